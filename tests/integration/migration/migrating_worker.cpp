// One process of a fleet that is being migrated. Adds one to counters in files, each under a lock, until the
// file "stop" appears; then writes how often it did so, and the longest time between two successes.
// Arguments: the old store, the new store, a folder, and optionally a point at which it dies.

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <string>

#include "lockkeeper/lock_manager.h"
#include "lockkeeper/migration/migrating_driver.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "migration_timing.h"
#include "temp_folder.h"

namespace lockkeeper::test {
namespace {

using std::chrono::milliseconds;

/// A store in front of which, or behind which, the process is killed.
class DeadlyDriver final : public LockDriver {
 public:
  DeadlyDriver(std::shared_ptr<LockDriver> inner, std::string name, std::string deadly)
      : inner_(std::move(inner)), name_(std::move(name)), deadly_(std::move(deadly)) {}

  AcquireResult acquire(const AcquireRequest& request) override {
    const bool probe = request.claim.key.starts_with("lockkeeper-migration-probe-");
    if (!probe) die("before-acquire-");
    AcquireResult result = inner_->acquire(request);
    if (!probe) die("after-acquire-");
    return result;
  }
  void renew(std::span<Renewal> renewals, Instant deadline) override { inner_->renew(renewals, deadline); }
  ReleaseOutcome release(const Claim& claim, Instant deadline) override {
    const ReleaseOutcome outcome = inner_->release(claim, deadline);
    if (!claim.key.starts_with("lockkeeper-migration-probe-")) die("after-release-");
    return outcome;
  }
  std::optional<Holder> holder(std::string_view key, Instant deadline) override {
    return inner_->holder(key, deadline);
  }
  Promises promises() const override { return inner_->promises(); }

 private:
  void die(const char* point) const {
    if (deadly_ == point + name_) ::raise(SIGKILL);
  }

  const std::shared_ptr<LockDriver> inner_;
  const std::string name_;
  const std::string deadly_;
};

/// Reads, then writes: what a broken lock would show in.
void addOne(const std::filesystem::path& file) {
  const std::string text = readFile(file);
  writeFile(file, std::to_string(std::stoll(text.empty() ? "0" : text) + 1));
}

int work(const std::string& from, const std::string& to, const std::filesystem::path& folder,
         const std::string& deadly) {
  StoreRegistry registry;
  redis::use(registry);
  const auto newStore = registry.open(to);
  auto driver = std::make_shared<migration::MigratingDriver>(
      std::make_shared<DeadlyDriver>(registry.open(from), "old", deadly),
      std::make_shared<DeadlyDriver>(newStore, "new", deadly),
      std::dynamic_pointer_cast<Noticeboard>(newStore), migrationTiming());
  LockManager manager(std::move(driver));
  const auto clock = systemClock();
  Instant last = clock->now();
  milliseconds longest{0};
  int done = 0;
  while (!std::filesystem::exists(folder / "stop")) {
    for (const std::string key : fleetKeys) {
      Lock lock = manager.lock(key, {.ttl = fleetTtl, .waitFor = std::chrono::minutes{1}});
      addOne(folder / key);
      if (lock.release() != ReleaseResult::released) std::cerr << "the lock " << key << " was lost\n";
      ++done;
      const Instant now = clock->now();
      longest = std::max(longest, std::chrono::duration_cast<milliseconds>(now - last));
      last = now;
    }
  }
  writeFile(folder / ("done." + std::to_string(::getpid())),
            std::to_string(done) + " " + std::to_string(longest.count()));
  return 0;
}

}  // namespace
}  // namespace lockkeeper::test

int main(int count, char** arguments) {
  if (count < 4) return 64;
  return lockkeeper::test::work(arguments[1], arguments[2], arguments[3], count > 4 ? arguments[4] : "");
}
