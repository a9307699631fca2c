// One Redis through the whole of core, beside bare hiredis on the same server in the same run.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "contest.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "raw_redis.h"
#include "redis_server.h"

namespace lockkeeper {
namespace {

LockManager open(const test::RedisServer& server, const std::string& parameters) {
  StoreRegistry registry;
  redis::use(registry);
  return LockManager(registry.open(server.uri() + parameters));
}

bench::Way hiredis(const test::RedisServer& server) {
  return {"hiredis", [&server](int thread) {
            return [redis = std::make_shared<bench::RawRedis>(server.port()),
                    key = "bare:" + std::to_string(thread)] { redis->pair(key); };
          }};
}

// As a program does that lets its Lock go out of scope: the release's answer is not waited for.
bench::Way scopes(std::string name, LockManager& locks) {
  return {std::move(name), [&locks](int thread) {
            return [&locks, key = "scope:" + std::to_string(thread)] {
              if (!locks.tryLock(key)) throw std::runtime_error("the lock was not taken");
            };
          }};
}

// A lock of one process with a queue: each waiter is woken up when its turn has come.
class FifoLock {
 public:
  void lock() {
    std::unique_lock held(mutex_);
    if (!std::exchange(taken_, true)) return;
    thread_local Waiter self;
    self.turn = false;
    waiters_.push_back(&self);
    self.wakeUp.wait(held, [&] { return self.turn; });
  }
  void unlock() {
    const std::lock_guard held(mutex_);
    taken_ = !waiters_.empty();
    if (!taken_) return;
    Waiter& next = *waiters_.front();
    waiters_.pop_front();
    next.turn = true;
    next.wakeUp.notify_one();
  }

 private:
  struct Waiter {
    std::condition_variable wakeUp;
    bool turn = false;
  };
  std::mutex mutex_;
  bool taken_ = false;
  std::deque<Waiter*> waiters_;
};

bench::Way queueOfThreads(FifoLock& lock) {
  return {"a queue of the threads alone",
          [&lock](int) { return [&lock] { const std::lock_guard held(lock); }; }};
}

bench::Way oneKey(LockManager& locks) {
  return {"lockkeeper", [&locks](int) {
            return [&locks] { const auto held = locks.lock("hot", {.waitFor = std::chrono::minutes{1}}); };
          }};
}

}  // namespace
}  // namespace lockkeeper

int main(int count, char** arguments) {
  using namespace lockkeeper;
  const test::RedisServer server;
  LockManager plain = open(server, "?fence=off"), fenced = open(server, "");
  const std::vector<bench::Way> ways{hiredis(server), bench::pairs("no fence", plain),
                                     bench::pairs("with a fence", fenced),
                                     scopes("with a fence, not awaited", fenced)};
  const std::string plainPair = "no fence", fencedPair = "with a fence", posted = "with a fence, not awaited",
                    bare = "hiredis";
  bench::Contest contest("redis", "redis-server", count, arguments);
  contest.measure(1, ways,
                  {{.ours = plainPair, .beside = bare, .server = 1.0, .client = 1.0},
                   {.ours = fencedPair, .beside = bare, .server = 1.15, .client = 1.1},
                   {.ours = posted,
                    .beside = bare,
                    .server = bench::shown,
                    .client = bench::shown,
                    .time = bench::shown}});
  contest.measure(16, ways,
                  {{.ours = plainPair, .beside = bare, .server = 0.6, .client = 0.8},
                   {.ours = fencedPair, .beside = bare, .server = 0.9, .client = 0.85, .perSecond = 1.2}});
  contest.measure(64, ways,
                  {{.ours = plainPair, .beside = bare, .server = 0.4, .client = 0.7},
                   {.ours = fencedPair, .beside = bare, .server = 0.6, .client = 0.75}});

  FifoLock fifo;
  bench::Contest oneHotKey("redis: one key for all", "redis-server", count, arguments);
  oneHotKey.measure(16, {queueOfThreads(fifo), oneKey(fenced)},
                    {{.ours = "lockkeeper", .beside = "a queue of the threads alone", .client = 2.22}});
  return 0;
}
