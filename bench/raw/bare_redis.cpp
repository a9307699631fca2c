#include "bare_redis.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "lockkeeper/base/random.h"
#include "lockkeeper/base/token.h"
#include "shared_redis.h"

namespace lockkeeper::bench {

namespace {

// KEYS: the lock, its queue; ARGV: the value. 2 when somebody waits.
constexpr const char* releaseLock = R"lua(
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
if redis.call('EXISTS', KEYS[2]) == 1 then
  return 2
end
return redis.call('DEL', KEYS[1])
)lua";

// KEYS: the lock, its fence counter; ARGV: the value, the lease in ms.
constexpr const char* takeLock = R"lua(
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return 0
end
local counter, time = KEYS[2], redis.call('TIME')
)lua";

// KEYS: what is shared, its queue, its fence counter; ARGV: the value, the lease in ms, how many shares there
// are.
constexpr const char* takeShare = R"lua(
if redis.call('EXISTS', KEYS[2]) == 1 then
  return 0
end
local counter, time = KEYS[3], redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then
  return 0
end
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
local last = redis.call('GET', counter)
if last then
  return tonumber(last)
end
)lua";

// Not behind the server's clock, and kept for a week, as drivers/redis/scripts/lock/fence.lua has it.
constexpr const char* drawFence = R"lua(
local fence = redis.call('INCR', counter)
if fence < time[1] * 1000000 then
  fence = time[1] * 1000000 + time[2]
  redis.call('SET', counter, fence, 'PX', 604800000)
end
return fence
)lua";

// KEYS: what is shared, its queue; ARGV: the value. 2 when somebody waits.
constexpr const char* releaseShare = R"lua(
return redis.call('ZREM', KEYS[1], ARGV[1]) == 1 and 1 + redis.call('EXISTS', KEYS[2]) or 0
)lua";

using Ask = std::function<std::int64_t(Words)>;

// What one thread does again and again.
class BareCalls {
 public:
  BareCalls(Ask ask, Promise promise, std::string take, std::string release, std::string key)
      : ask_(std::move(ask)),
        promise_(promise),
        take_(std::move(take)),
        release_(std::move(release)),
        key_(std::move(key)),
        queue_("{" + key_ + "}:queue"),
        counter_("{" + key_ + "}:fence") {}

  void operator()() {
    const std::string value = Token::generate(*random_).hex();
    if (take(value) == 0 || ask_({"EVALSHA", release_, "2", key_, queue_, value}) != 1)
      throw std::runtime_error("what was to be taken was busy");
  }

 private:
  // 0, or another number.
  std::int64_t take(const std::string& value) {
    switch (promise_) {
      case Promise::lock:
        return ask_({"SET", key_, value, "NX", "PX", "30000"});
      case Promise::fencedLock:
        return ask_({"EVALSHA", take_, "2", key_, counter_, value, "30000"});
      case Promise::share:
        return ask_({"EVALSHA", take_, "3", key_, queue_, counter_, value, "30000", "1000"});
    }
    return 0;
  }

  const std::shared_ptr<Random> random_ = systemRandom();
  const Ask ask_;
  const Promise promise_;
  const std::string take_, release_;  // names of scripts
  const std::string key_, queue_, counter_;
};

class Turns {
 public:
  explicit Turns(std::uint16_t port) : redis_(port), release_(redis_.load(RawRedis::releaseScript)) {}

  void take() {
    std::unique_lock held(mutex_);
    if (isTaken_) {
      Waiter own;
      waiting_.push_back(&own);
      own.told.wait(held, [&] { return own.isNext; });
    }
    isTaken_ = true;
    if (turns_++ == 0 && redis_.ask({"SET", key, token, "NX", "PX", "30000"}) != 1)
      throw std::runtime_error("the bare key was busy");
  }

  void giveBack() {
    const std::lock_guard held(mutex_);
    if (waiting_.empty() || turns_ == most) {
      turns_ = 0;
      if (redis_.ask({"EVALSHA", release_, "1", key, token}) != 1)
        throw std::runtime_error("the bare key was lost");
    }
    isTaken_ = !waiting_.empty();
    if (waiting_.empty()) return;
    waiting_.front()->isNext = true;
    waiting_.front()->told.notify_one();
    waiting_.pop_front();
  }

 private:
  struct Waiter {
    bool isNext = false;
    std::condition_variable told{};
  };
  static constexpr int most = 64;
  static constexpr const char *key = "bare:hot", *token = "0123456789abcdef0123456789abcdef";

  std::mutex mutex_;
  RawRedis redis_;
  const std::string release_;
  std::deque<Waiter*> waiting_;
  bool isTaken_ = false;
  int turns_ = 0;  // since the store was asked
};

}  // namespace

Way bareWay(std::string name, std::uint16_t port, Promise promise, Connections connections) {
  const bool shares = promise == Promise::share;
  RawRedis first(port);
  const std::string take = first.load(std::string(shares ? takeShare : takeLock) + drawFence),
                    release = first.load(shares ? releaseShare : releaseLock);
  const auto forAll = connections == Connections::oneForAll ? std::make_shared<SharedRedis>(port) : nullptr;
  return {std::move(name), [=](int thread) {
            Ask ask = [forAll](Words words) { return forAll->ask(words); };
            if (!forAll) {
              ask = [own = std::make_shared<RawRedis>(port)](Words words) { return own->ask(words); };
            }
            return BareCalls(std::move(ask), promise, take, release,
                             shares ? "shared" : "bare:" + std::to_string(thread));
          }};
}

Way bareTurns(std::string name, std::uint16_t port) {
  return {std::move(name), [turns = std::make_shared<Turns>(port)](int) {
            return [turns] {
              turns->take();
              turns->giveBack();
            };
          }};
}

}  // namespace lockkeeper::bench
