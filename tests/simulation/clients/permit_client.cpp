#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "lockkeeper/error.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/permit/semaphore.h"
#include "lockkeeper/permit/upgradeable_lock.h"
#include "simulation/clients/client.h"

namespace lockkeeper::simulation {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr std::uint32_t permitsOfP = 3;

class PermitClient final : public Client {
 public:
  explicit PermitClient(const ClientSetting& setting)
      : scene_(setting.scene),
        manager_(setting.driver, {.owner = setting.owner,
                                  .operationTimeout = operationTimeout,
                                  .lock = {.ttl = 1s, .safetyMargin = 0ms},
                                  .environment = setting.environment}),
        semaphore_(manager_, "p", permitsOfP) {}

  void operate(Chance chance) override {
    const milliseconds waitFor(chance.happens(0.3) ? 0 : chance.upTo(4000));
    switch (chance.upTo(6)) {
      case 0:
      case 1:
        takePermits(chance, waitFor);
        break;
      case 2:
        takeOne(chance, "p", Believers::whole, waitFor);
        break;
      case 3:
        takeOne(chance, chance.happens(0.5) ? "a" : "b", readerShare, waitFor);
        break;
      case 4:
        readAndPerhapsWrite(chance, chance.happens(0.5) ? "a" : "b", waitFor);
        break;
      default:
        takeAll(chance, waitFor);
    }
    if (chance.happens(0.3)) std::this_thread::sleep_for(milliseconds(chance.upTo(1000)));
  }

 private:
  // Calls `take()`, which has to end in time, and tells the trace of it.
  template <class Take>
  auto called(const std::string& what, milliseconds waitFor, milliseconds rest, const Take& take)
      -> decltype(take()) {
    scene_.scheduler.trace(
        [&] { return "takes " + what + ", waits for up to " + std::to_string(waitFor.count()) + " ms"; });
    const Judge::Call call = scene_.judge.callBegins();
    decltype(take()) taken{};
    try {
      taken = take();
      scene_.scheduler.trace([&] { return (taken ? "has " : "does not get ") + what; });
    } catch (const Error& error) {
      scene_.scheduler.trace([&] { return std::string("gets an error: ") + error.what(); });
    }
    scene_.judge.callEnds(call, what, waitFor, rest);
    return taken;
  }

  void takePermits(Chance& chance, milliseconds waitFor) {
    const auto count = static_cast<std::uint32_t>(1 + chance.upTo(permitsOfP - 1));
    std::optional<Lock> lock = called(std::to_string(count) + " of p", waitFor, operationTimeout + ioTimeout,
                                      [&] { return semaphore_.tryAcquire(count, waitFor); });
    if (lock) hold(chance, *lock, "p", {.weight = count, .limit = permitsOfP});
  }

  void takeOne(Chance& chance, const std::string& key, Share share, milliseconds waitFor) {
    LockOptions options{.waitFor = waitFor};
    if (chance.happens(0.3)) options.renew = Renew::manual;
    const bool shared = share == readerShare;
    std::optional<Lock> lock = called(
        (shared ? "a share of " : "all of ") + key, waitFor, operationTimeout + ioTimeout,
        [&] { return shared ? manager_.tryLockShared(key, options) : manager_.tryLock(key, options); });
    if (lock) hold(chance, *lock, key, share);
  }

  void hold(Chance& chance, Lock& lock, const std::string& key, Share share) {
    const auto belief = scene_.believers.granted(key, lock, share);
    stay(chance);
    scene_.believers.givesUp(belief);
    scene_.scheduler.trace([&] { return "gives back " + key; });
    if (chance.happens(0.5)) lock.release();
  }

  void readAndPerhapsWrite(Chance& chance, const std::string& key, milliseconds waitFor) {
    auto lock = called("an upgradeable share of " + key, waitFor, operationTimeout + ioTimeout,
                       [&] { return UpgradeableLock::tryLock(manager_, key, {.waitFor = waitFor}); });
    if (!lock) return;
    auto belief = scene_.believers.granted(key, *lock, readerShare);
    stay(chance);
    const milliseconds upgradeFor(chance.upTo(1000));
    // It takes the rest, confirms what it had, and may have to give back the rest.
    const bool writes = called("all of " + key, upgradeFor, 3 * (operationTimeout + ioTimeout),
                               [&] { return lock->tryUpgrade(upgradeFor); });
    if (writes) {
      scene_.believers.givesUp(belief);
      belief = scene_.believers.granted(key, *lock, Believers::whole);
      stay(chance);
    }
    if (writes && chance.happens(0.5)) {
      scene_.believers.givesUp(belief);
      lock->downgrade();
      belief = scene_.believers.granted(key, *lock, readerShare);
      stay(chance);
    }
    scene_.believers.givesUp(belief);
    scene_.scheduler.trace([&] { return "gives back " + key; });
    if (chance.happens(0.5)) lock->release();
  }

  void takeAll(Chance& chance, milliseconds waitFor) {
    std::vector<std::string_view> keys{"a", "b", "c", "p"};
    std::swap(keys[0], keys[chance.upTo(3)]);
    keys.erase(keys.begin() + static_cast<std::ptrdiff_t>(chance.upTo(2)));
    const LockOptions options{.waitFor = waitFor};
    std::string what = "all of";
    for (const std::string_view key : keys) what += " " + std::string(key);
    std::optional<LockSet> set = called(what, waitFor, 2 * operationTimeout + 2 * ioTimeout,
                                        [&] { return manager_.tryLockAll(keys, options); });
    if (!set) return;
    if (set->locks().size() != keys.size()) {
      scene_.judge.fail(what, "is " + std::to_string(set->locks().size()) + " locks");
      return;
    }
    const std::vector<Believers::Token> beliefs = scene_.believers.granted(*set);
    stay(chance);
    for (const Believers::Token each : beliefs) scene_.believers.givesUp(each);
    scene_.scheduler.trace([&] { return "gives back " + what; });
    if (chance.happens(0.5)) set->release();
  }

  static void stay(Chance& chance) {
    if (!chance.happens(0.7)) return;
    const bool longer = chance.happens(0.2);
    std::this_thread::sleep_for(milliseconds(chance.upTo(longer ? 2500 : 100)));
  }

  Scene& scene_;
  LockManager manager_;
  Semaphore semaphore_;
};

}  // namespace

std::unique_ptr<Client> permitClient(const ClientSetting& setting) {
  return std::make_unique<PermitClient>(setting);
}

}  // namespace lockkeeper::simulation
