#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lockkeeper/error.h"
#include "lockkeeper/lock_manager.h"
#include "simulation/clients/client.h"

namespace lockkeeper::simulation {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

class LockClient final : public Client {
 public:
  LockClient(const ClientSetting& setting, bool shares, double renewed)
      : scene_(setting.scene),
        shares_(shares),
        longestHold_(setting.longestHold),
        renewed_(renewed),
        manager_(setting.driver, {.owner = setting.owner,
                                  .operationTimeout = operationTimeout,
                                  .lock = {.ttl = 1s},
                                  .environment = setting.environment}) {}

  void operate(Chance chance) override {
    LockOptions options;
    options.waitFor = milliseconds(chance.happens(0.3) ? 0 : chance.upTo(4000));
    if (chance.happens(0.3)) options.renew = Renew::manual;
    const milliseconds cancelledAfter(chance.upTo(1000));
    std::optional<Cancellation> cancellation;
    milliseconds longest = *options.waitFor;
    if (chance.happens(0.1)) {
      cancellation.emplace(cancelledAfter);
      options.stop = cancellation->token();
      longest = std::min(longest, cancelledAfter);
    }
    chance.happens(0.1) ? takeBoth(options, longest, chance) : takeOne(options, longest, chance);
    if (chance.happens(0.3)) std::this_thread::sleep_for(milliseconds(chance.upTo(1000)));
  }

 private:
  // Calls `take()`, which has to end in time, and tells the trace of it.
  template <class Take>
  auto called(const std::string& what, const LockOptions& options, milliseconds longest, milliseconds rest,
              const Take& take) -> decltype(take()) {
    scene_.scheduler.trace([&] {
      return "takes " + what + ", waits for up to " + std::to_string(options.waitFor->count()) + " ms" +
             (options.stop.stop_possible() ? ", unless it is cancelled" : "");
    });
    const Judge::Call call = scene_.judge.callBegins();
    decltype(take()) taken;
    try {
      taken = take();
      if (!taken) scene_.scheduler.trace([&] { return "does not get " + what; });
    } catch (const Error& error) {
      scene_.scheduler.trace([&] { return std::string("gets an error: ") + error.what(); });
    }
    scene_.judge.callEnds(call, what, longest, rest);
    return taken;
  }

  void takeOne(const LockOptions& options, milliseconds longest, Chance& chance) {
    const std::string key = chance.happens(0.7) ? "a" : "b";
    const bool shared = chance.happens(0.25) && shares_;
    std::optional<Lock> lock = called(
        (shared ? "a share of " : "") + key, options, longest, operationTimeout + ioTimeout,
        [&] { return shared ? manager_.tryLockShared(key, options) : manager_.tryLock(key, options); });
    if (lock) hold(key, *lock, shared, chance);
  }

  void takeBoth(const LockOptions& options, milliseconds longest, Chance& chance) {
    const std::vector<std::string> keys{"b", "a"};
    std::optional<LockSet> set = called("a and b", options, longest, 2 * (operationTimeout + ioTimeout),
                                        [&] { return manager_.tryLockAll(keys, options); });
    if (!set) return;
    const std::vector<Believers::Token> beliefs = scene_.believers.granted(*set);
    scene_.scheduler.trace([] { return "has a and b"; });
    std::this_thread::sleep_for(milliseconds(chance.upTo(chance.happens(renewed_) ? 2500 : 100)));
    for (const Believers::Token each : beliefs) scene_.believers.givesUp(each);
    scene_.scheduler.trace([] { return "gives back a and b"; });
    if (chance.happens(0.5)) set->release();
  }

  void hold(const std::string& key, Lock& lock, bool shared, Chance& chance) {
    scene_.scheduler.trace([&] {
      return "has " + key + ", fence " +
             std::to_string(static_cast<std::uint64_t>(lock.fence().value_or(Fence{})));
    });
    const auto belief = scene_.believers.granted(key, lock, shared ? readerShare : Believers::whole);
    if (chance.happens(0.7)) {
      const milliseconds longest = chance.happens(renewed_) ? longestHold_ : 100ms;
      std::this_thread::sleep_for(milliseconds(chance.upTo(static_cast<std::uint64_t>(longest.count()))));
    }
    scene_.believers.givesUp(belief);
    scene_.scheduler.trace([&] { return "gives back " + key; });
    if (chance.happens(0.1)) {
      lock.releaseHeldFor(milliseconds(chance.upTo(300)));
    } else if (chance.happens(0.5)) {
      release(key, lock);
    } else {
      lock = {};
    }
  }

  // Who holds it is told so, as long as its lease runs.
  void release(const std::string& key, Lock& lock) {
    const Time ends = scene_.scheduler.after(std::chrono::nanoseconds(lock.remaining()).count());
    const ReleaseResult result = lock.release();
    if (result == ReleaseResult::notOwner && scene_.scheduler.now() < ends)
      scene_.judge.fail(key, "was not its holder's when it was released");
  }

  Scene& scene_;
  const bool shares_;
  const milliseconds longestHold_;
  const double renewed_;  // the part of them that are held for about as long as their lease, or longer
  LockManager manager_;
};

}  // namespace

std::unique_ptr<Client> lockClient(const ClientSetting& setting) {
  return std::make_unique<LockClient>(setting, true, 0.2);
}

std::unique_ptr<Client> renewedLockClient(const ClientSetting& setting) {
  return std::make_unique<LockClient>(setting, true, 0.6);
}

std::unique_ptr<Client> wholeLockClient(const ClientSetting& setting) {
  return std::make_unique<LockClient>(setting, false, 0.2);
}

}  // namespace lockkeeper::simulation
