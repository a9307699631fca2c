#include "lock/node/replica_count.h"

#include <algorithm>
#include <array>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "lock/lock_value.h"
#include "wire/protocol/script.h"
#include "wire/protocol/server_error.h"

namespace lockkeeper::redis {

namespace {

constexpr std::string_view replicaRights = "+wait and +publish, on the channels lockkeeper:*";

// The number of those who have heard what was published; 1 for a lock that is still there.
bool isWrite(const Reply& reply, ClusterUse use) {
  return use == ClusterUse::none ? reply.kind == ReplyKind::integer : reply.isInteger(1);
}

// The server may say nothing for as long as WAIT was told to wait.
RedisOptions waiting(RedisOptions options) {
  options.ioTimeout += options.replicaTimeout;
  return options;
}

}  // namespace

struct ReplicaCount::Turn {
  bool over = false;
  std::vector<Written> written{};  // by the first who share it, and by the one who asks
  std::string serverRun{};         // of the server that was asked
  std::uint64_t connection = 0;
  Answer answer{};
};

ReplicaCount::ReplicaCount(RedisStore& store) : store_(store) {
  if (store.options().minReplicas == 0) return;
  server_.emplace(std::vector{waiting(store.options())}, silent(store.environment()), Multiplexer::Admit{},
                  store.dialRules());
}

ReplicaCount::Answer ReplicaCount::having(std::uint64_t connection, std::vector<Written> some,
                                          Instant latest) {
  std::unique_lock lock(mutex_);
  if (!next_) next_ = std::make_shared<Turn>();
  const std::shared_ptr<Turn> turn = next_;
  for (const Written& each : some) {
    if (turn->written.size() < enough) turn->written.push_back(each);
  }
  while (!turn->over) {
    if (asking_) {
      if (store_.clock().now() >= latest) return {};
      store_.clock().wait(lock, ended_, latest);
      continue;
    }
    // Those who came before may have given up, and what they have written is gone then.
    for (Written& each : some) {
      if (std::ranges::find(turn->written, each) == turn->written.end())
        turn->written.push_back(std::move(each));
    }
    // Only now, since memory may have been short.
    asking_ = true;
    next_.reset();
    lock.unlock();
    const bool inTime = ask(*turn, latest);
    lock.lock();
    turn->over = inTime;
    asking_ = false;
    ended_.notify_all();
    if (!inTime) return {};  // others of the turn may have more time, and ask
  }
  lock.unlock();
  // After a failover, the replicas of another server say nothing about what was written here.
  const std::string granting = store_.serverRun(connection);
  const bool same = !turn->serverRun.empty() && turn->serverRun == granting;
  // Whichever of the two is the former master.
  if (!same && !granting.empty()) server_->disconnect(0, turn->connection, "the locks are on another server");
  return same || !turn->answer.refusal.empty() ? turn->answer : Answer{};
}

// False when the time was over before there was an answer.
bool ReplicaCount::ask(Turn& turn, Instant latest) {
  const RedisOptions& options = store_.options();
  try {
    Request request;
    addWrites(request, turn);
    request.add(
        {"WAIT", std::to_string(options.minReplicas), std::to_string(options.replicaTimeout.count())});
    const bool isImporting = options.cluster == ClusterUse::importingNode;
    if (isImporting) request.addAsking();
    server_->execute(request, latest);
    if (isImporting) request.dropAskingReplies();
    turn.connection = request.connection();
    const std::size_t last = request.size() - 1;
    bool written = false;
    for (std::size_t index = 0; index <= last; ++index) {
      const Reply& reply = request.reply(index);
      if (isError(reply, "NOPERM")) turn.answer.refusal = faultOf(store_.name(), reply, replicaRights).text;
      written = written || (index < last && isWrite(reply, options.cluster));
    }
    if (!written || request.reply(last).kind != ReplyKind::integer) return true;
    turn.answer.replicas = request.reply(last).integer;
    turn.serverRun = server_->serverRun(request.connection());
  } catch (const std::exception&) {
    return store_.clock().now() < latest;  // no answer: no replica is known to have it
  }
  return true;
}

// WAIT counts the replicas that have all that was written before the last write of its own connection. To
// publish is such a write, since replicas get it too. In a cluster all nodes would get it; there, what was
// written is written once more as it is. No other key is sure to be served while its slot is on its way.
void ReplicaCount::addWrites(Request& request, const Turn& turn) const {
  if (store_.options().cluster == ClusterUse::none) {
    request.add({"PUBLISH", "lockkeeper:replicas", ""});
    return;
  }
  for (const Written& each : turn.written) {
    const std::array<std::string_view, 1> keys = {each.key};
    const std::array<std::string_view, 3> arguments = {each.value, "1", "at least"};
    const auto text = textIn(each.value);
    const Script& script = text && text->share ? Script::renewPermits() : Script::renew();
    script.addTo(request, Script::By::text, keys, arguments);
  }
}

}  // namespace lockkeeper::redis
