#include <optional>
#include <string>
#include <thread>

#include "lockkeeper/error.h"
#include "lockkeeper/lock_manager.h"
#include "simulation/clients/client.h"

namespace lockkeeper::simulation {
namespace {

using namespace std::chrono_literals;

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
    const std::string key = chance.happens(0.7) ? "a" : "b";
    const bool shared = chance.happens(0.25) && shares_;
    LockOptions options;
    options.waitFor = std::chrono::milliseconds(chance.happens(0.3) ? 0 : chance.upTo(4000));
    if (chance.happens(0.3)) options.renew = Renew::manual;
    scene_.scheduler.trace([&] {
      return "takes " + std::string(shared ? "a share of " : "") + key + ", waits for up to " +
             std::to_string(options.waitFor->count()) + " ms";
    });
    const Judge::Call call = scene_.judge.callBegins();
    const auto ends = [&] {
      scene_.judge.callEnds(call, key, *options.waitFor, operationTimeout + ioTimeout);
    };
    try {
      std::optional<Lock> lock =
          shared ? manager_.tryLockShared(key, options) : manager_.tryLock(key, options);
      ends();
      if (!lock) scene_.scheduler.trace([&] { return key + " is busy"; });
      if (lock) hold(key, *lock, shared, chance);
    } catch (const Error& error) {
      scene_.scheduler.trace([&] { return std::string("gets an error: ") + error.what(); });
      ends();  // the store could not be reached in time
    }
    if (chance.happens(0.3)) std::this_thread::sleep_for(std::chrono::milliseconds(chance.upTo(1000)));
  }

 private:
  void hold(const std::string& key, Lock& lock, bool shared, Chance& chance) {
    scene_.scheduler.trace([&] {
      return "has " + key + ", fence " +
             std::to_string(static_cast<std::uint64_t>(lock.fence().value_or(Fence{})));
    });
    const auto belief = scene_.believers.granted(key, lock, shared ? readerShare : Believers::whole);
    if (chance.happens(0.7)) {
      const std::chrono::milliseconds longest = chance.happens(renewed_) ? longestHold_ : 100ms;
      std::this_thread::sleep_for(
          std::chrono::milliseconds(chance.upTo(static_cast<std::uint64_t>(longest.count()))));
    }
    scene_.believers.givesUp(belief);
    scene_.scheduler.trace([&] { return "gives back " + key; });
    if (chance.happens(0.1)) {
      lock.releaseHeldFor(std::chrono::milliseconds(chance.upTo(300)));
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
  const std::chrono::milliseconds longestHold_;
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
