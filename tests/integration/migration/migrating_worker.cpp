// One process of a fleet that is being migrated. Adds one to counters in files, each under a lock, until the
// file "stop" appears; then writes how often it did so, and the longest time in ms between two
// successes with the same key.
// Arguments: the old store, the new store, the store with the state, a folder, and optionally a point at
// which it dies.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "decorators.h"
#include "fleet_stores.h"
#include "lockkeeper/error.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/migration/migrating_driver.h"
#include "migration_timing.h"
#include "temp_folder.h"

namespace lockkeeper::test {
namespace {

using std::chrono::milliseconds;

/// A store in front of which, or behind which, the process is killed.
class DeadlyDriver final : public PlainDecorator {
 public:
  DeadlyDriver(std::shared_ptr<LockDriver> inner, std::string name, std::string deadly)
      : PlainDecorator(std::move(inner)), name_(std::move(name)), deadly_(std::move(deadly)) {}

  AcquireResult acquire(const AcquireRequest& request) override {
    const bool probe = isProbe(request.claim.key);
    if (!probe) die("before-acquire-");
    AcquireResult result = inner_->acquire(request);
    if (!probe) die("after-acquire-");
    return result;
  }
  ReleaseOutcome release(const Claim& claim, Instant deadline) override {
    const ReleaseOutcome outcome = inner_->release(claim, deadline);
    if (!isProbe(claim.key)) die("after-release-");
    return outcome;
  }

 private:
  static bool isProbe(std::string_view key) { return key.find(":lockkeeper:probe:") != key.npos; }
  void die(const char* point) const {
    if (deadly_ == point + name_) ::raise(SIGKILL);
  }

  const std::string name_;
  const std::string deadly_;
};

// Long enough for somebody else to come in between if the lock lets him, and for the fleet not to be what the
// machine is busy with.
constexpr milliseconds workOnOne{20};

/// Reads, then writes: what a broken lock would show in. Says so when somebody else is at it, too.
void addOne(const std::filesystem::path& file) {
  const std::filesystem::path mark = file.string() + ".held";
  const int alone = ::open(mark.c_str(), O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (alone < 0) std::cerr << "two hold " << file.filename() << "\n";
  const std::string text = readFile(file);
  std::this_thread::sleep_for(workOnOne);
  writeFile(file, std::to_string(std::stoll(text.empty() ? "0" : text) + 1));
  if (alone < 0) return;
  ::close(alone);
  std::filesystem::remove(mark);
}

/// The longest time between two successes.
class LongestStop {
 public:
  void success(Instant now) {
    if (last_) longest_ = std::max(longest_, std::chrono::duration_cast<milliseconds>(now - *last_));
    last_ = now;
  }
  milliseconds length() const { return longest_; }

 private:
  std::optional<Instant> last_;
  milliseconds longest_{0};
};

int work(const std::string& from, const std::string& to, const std::string& state,
         const std::filesystem::path& folder, const std::string& deadly) {
  auto driver = std::make_shared<migration::MigratingDriver>(
      std::make_shared<DeadlyDriver>(openStore(from), "old", deadly),
      std::make_shared<DeadlyDriver>(openStore(to), "new", deadly), openStateStore(state), migrationTiming());
  LockManager manager(std::move(driver));
  const auto clock = systemClock();
  std::map<std::string, LongestStop> stops;
  int done = 0;
  int failures = 0;
  while (!std::filesystem::exists(folder / "stop")) {
    for (const std::string key : fleetKeys) {
      std::optional<Lock> lock;
      try {
        lock = manager.tryLock(key, {.ttl = fleetTtl, .waitFor = fleetTtl / 10});
      } catch (const Error& error) {
        // On a busy machine a store is too late now and then.
        if (++failures > 2) std::cerr << error.what() << "\n";
      }
      if (!lock) continue;
      addOne(folder / key);
      if (lock->release() != ReleaseResult::released) std::cerr << "the lock " << key << " was lost\n";
      ++done;
      stops[key].success(clock->now());
    }
  }
  milliseconds longest{0};
  for (const auto& [key, stop] : stops) longest = std::max(longest, stop.length());
  writeFile(folder / ("done." + std::to_string(::getpid())),
            std::to_string(done) + " " + std::to_string(longest.count()));
  return 0;
}

}  // namespace
}  // namespace lockkeeper::test

int main(int count, char** arguments) {
  if (count < 5) return 64;
  return lockkeeper::test::work(arguments[1], arguments[2], arguments[3], arguments[4],
                                count > 5 ? arguments[5] : "");
}
