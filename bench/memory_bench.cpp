// The embedded store through the whole of core, beside a bare table of leases.

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "contest.h"
#include "lockkeeper/base/clock.h"
#include "lockkeeper/base/random.h"
#include "lockkeeper/base/token.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/memory/memory_driver.h"

namespace lockkeeper {
namespace {

using namespace std::chrono_literals;

/// What a lease takes at least: a token, a fence, an end by the clock, and a time to renew it; all of it
/// under one mutex. Thread-safe.
class BareTable {
 public:
  struct Lease {
    Token token;
    Fence fence = 0;
    Instant end{};
  };

  std::optional<Lease> tryLock(const std::string& key) {
    const Token token = Token::generate(*random_);
    const Instant now = clock_->now();
    const std::lock_guard held(mutex_);
    const auto found = leases_.try_emplace(key).first;
    if (now < found->second.end) return std::nullopt;
    found->second = {token, ++lastFence_, now + ttl};
    renewals_.emplace(found->second.end - ttl / 3, found->first);
    return found->second;
  }

  bool release(const std::string& key, const Lease& lease) {
    const Instant now = clock_->now();
    const std::lock_guard held(mutex_);
    const auto found = leases_.find(key);
    if (found == leases_.end() || found->second.token != lease.token || found->second.end <= now)
      return false;
    renewals_.erase({lease.end - ttl / 3, found->first});
    found->second.end = Instant::min();
    return true;
  }

 private:
  static constexpr auto ttl = 30s;

  const std::shared_ptr<Random> random_ = systemRandom();
  const std::shared_ptr<Clock> clock_ = systemClock();
  std::mutex mutex_;
  std::unordered_map<std::string, Lease> leases_;  // of released keys, too
  std::set<std::pair<Instant, std::string_view>> renewals_;
  Fence lastFence_ = 0;
};

}  // namespace
}  // namespace lockkeeper

int main(int count, char** arguments) {
  using namespace lockkeeper;
  LockManager locks(std::make_shared<MemoryDriver>());
  BareTable table;
  const Lock held = locks.lock("held");
  const std::string ours = "lock and unlock", bare = "bare, one table";
  const std::vector<bench::Way> ways{
      bench::pairs(ours, locks),
      {"a key that is taken", [&](int) { return [&] { (void)locks.tryLock("held"); }; }},
      {"valid()", [&](int) { return [&] { (void)held.valid(); }; }},
      {bare, [&](int thread) {
         return [&table, key = "order:" + std::to_string(thread)] {
           const auto lease = table.tryLock(key);
           if (!lease || !table.release(key, *lease)) throw std::runtime_error("the lock was not taken");
         };
       }}};
  bench::Contest contest("memory", "", count, arguments);
  contest.measure(1, ways, {{.ours = ours, .client = 0.4, .bare = {bare}}});
  contest.measure(4, ways, {});
  return 0;
}
