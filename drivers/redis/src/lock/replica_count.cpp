#include "lock/replica_count.h"

#include <algorithm>
#include <exception>
#include <string>

namespace lockkeeper::redis {

struct ReplicaCount::Turn {
  bool over = false;
  std::uint64_t connection = 0;
  std::int64_t replicas = 0;
};

std::int64_t ReplicaCount::having(std::uint64_t connection, Instant deadline) {
  std::unique_lock lock(mutex_);
  if (!next_) next_ = std::make_shared<Turn>();
  const std::shared_ptr<Turn> turn = next_;
  while (!turn->over) {
    if (asking_) {
      if (store_.clock().now() >= deadline) return 0;
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
  return turn->connection == connection ? turn->replicas : 0;
}

void ReplicaCount::ask(Turn& turn, Instant deadline) {
  const RedisOptions& options = store_.options();
  const Instant enough = saturatingAdd(store_.clock().now(), options.replicaTimeout + options.ioTimeout);
  try {
    Request request;
    request.add(
        {"WAIT", std::to_string(options.minReplicas), std::to_string(options.replicaTimeout.count())});
    store_.execute(request, std::max(deadline, enough));
    turn.connection = request.connection();
    if (request.reply(0).kind == ReplyKind::integer) turn.replicas = request.reply(0).integer;
  } catch (const std::exception&) {
    // No answer: no replica is known to have it.
  }
}

}  // namespace lockkeeper::redis
