#include "bare_redis.h"

#include <functional>
#include <memory>
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

}  // namespace lockkeeper::bench
