#include "lock/replica_count.h"

#include <algorithm>
#include <exception>
#include <string>

#include "wire/protocol/server_error.h"

namespace lockkeeper::redis {

namespace {

constexpr std::string_view needs = "+wait and +publish, on the channels lockkeeper:*";

// The server may say nothing for as long as WAIT was told to wait.
RedisOptions waiting(RedisOptions options) {
  options.ioTimeout += options.replicaTimeout;
  return options;
}

}  // namespace

struct ReplicaCount::Turn {
  bool over = false;
  std::string serverRun{};  // of the server that was asked
  std::uint64_t connection = 0;
  Answer answer{};
};

ReplicaCount::ReplicaCount(RedisStore& store) : store_(store) {
  if (store.options().minReplicas == 0) return;
  server_.emplace(std::vector{waiting(store.options())}, silent(store.environment()), Multiplexer::Admit{},
                  store.dialRules());
}

ReplicaCount::Answer ReplicaCount::having(std::uint64_t connection, Instant deadline) {
  std::unique_lock lock(mutex_);
  if (!next_) next_ = std::make_shared<Turn>();
  const std::shared_ptr<Turn> turn = next_;
  while (!turn->over) {
    if (asking_) {
      if (store_.clock().now() >= deadline) return {};
      store_.clock().wait(lock, ended_, deadline);
      continue;
    }
    asking_ = true;
    next_.reset();
    lock.unlock();
    ask(*turn, deadline);
    lock.lock();
    turn->over = true;
    asking_ = false;
    ended_.notify_all();
  }
  lock.unlock();
  // After a failover, the replicas of another server say nothing about what was written here.
  const std::string granting = store_.serverRun(connection);
  const bool same = !turn->serverRun.empty() && turn->serverRun == granting;
  // Whichever of the two is the former master.
  if (!same && !granting.empty()) server_->disconnect(0, turn->connection, "the locks are on another server");
  return same || !turn->answer.refusal.empty() ? turn->answer : Answer{};
}

void ReplicaCount::ask(Turn& turn, Instant deadline) {
  const RedisOptions& options = store_.options();
  const Instant enough = saturatingAdd(store_.clock().now(), options.replicaTimeout + options.ioTimeout);
  try {
    Request request;
    // WAIT counts the replicas that have all that was written before the last write of its own connection. To
    // publish is such a write, since replicas get it too.
    request.add({"PUBLISH", "lockkeeper:replicas", ""});
    request.add(
        {"WAIT", std::to_string(options.minReplicas), std::to_string(options.replicaTimeout.count())});
    server_->execute(request, std::max(deadline, enough));
    turn.connection = request.connection();
    for (std::size_t index = 0; index < request.size(); ++index) {
      const Reply& reply = request.reply(index);
      if (isError(reply, "NOPERM")) turn.answer.refusal = faultOf(store_.name(), reply, needs).text;
      if (reply.kind != ReplyKind::integer) return;
    }
    turn.answer.replicas = request.reply(1).integer;
    turn.serverRun = server_->serverRun(request.connection());
  } catch (const std::exception&) {
    // No answer: no replica is known to have it.
  }
}

}  // namespace lockkeeper::redis
