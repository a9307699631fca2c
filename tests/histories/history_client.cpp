// One process of a history: takes locks of a store, reads and writes under them, and releases them, takes
// permits and charges a limit, until SIGTERM. Writes each step as a line of the history before it goes on.
// Arguments: the store's URI, the file for its lines, its name, a seed, the folder of the guarded values.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "guarded_value.h"
#include "history_keys.h"
#include "journal.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/etcd/use.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/permit/semaphore.h"
#include "lockkeeper/postgres/use.h"
#include "lockkeeper/rate_limiter.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "lockkeeper/testing/history/json_line.h"
#include "lockkeeper/testing/history/recorder.h"

namespace lockkeeper::test {
namespace {

using std::chrono::milliseconds;
using testing::history::Kind;
using testing::history::Operation;
using testing::history::Phase;
using testing::history::Record;
using testing::history::RecordedLock;
using testing::history::Recorder;

volatile std::sig_atomic_t ended = 0;

class Client {
 public:
  Client(const std::string& uri, const std::string& lines, std::string name, unsigned seed,
         std::filesystem::path values)
      : name_(std::move(name)),
        values_(std::move(values)),
        random_(seed),
        recorder_([journal = Journal(lines)](const Record& each) { journal.add(toJson(each)); }),
        driver_(registry().open(uri)),
        manager_(driver_, {.owner = name_}),
        hasShares_(capability<Permits>(*driver_) != nullptr) {
    if (hasShares_) pool_.emplace(manager_, pool, poolPermits, LockOptions{.ttl = historyTtl});
    if (auto rates = capability<RateDriver>(driver_)) limiter_.emplace(std::move(rates));
  }

  void run() {
    while (ended == 0) {
      try {
        step();
      } catch (const Error&) {
        std::this_thread::sleep_for(milliseconds{20});
      }
    }
  }

 private:
  static StoreRegistry registry() {
    StoreRegistry made;
    redis::use(made);
    mysql::use(made);
    postgres::use(made);
    etcd::use(made);
    return made;
  }

  int below(int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(random_); }

  void step() {
    if (limiter_ && below(4) == 0) return charge();
    if (pool_ && below(5) == 0) return takePermits();
    lockOne();
  }

  void charge() {
    const RatePolicy& policy = historyPolicy();
    const std::int64_t units = 1 + below(2);
    Record call = {.process = name_,
                   .operation = Operation::take,
                   .key = "phone",
                   .policy = policy.name(),
                   .units = units};
    call.id = recorder_.record(call);
    const Decision decision = limiter_->take(call.key, policy, units);
    call.phase = decision.allowed ? Phase::ok : decision.outage ? Phase::unknown : Phase::fail;
    recorder_.record(call);
    if (!decision.allowed) std::this_thread::sleep_for(milliseconds{20});
  }

  void takePermits() {
    const auto count = static_cast<std::uint32_t>(1 + below(2));
    const milliseconds waitFor{below(1500)};
    Record call = {.process = name_,
                   .operation = Operation::lock,
                   .key = pool,
                   .kind = Kind::permits,
                   .permits = {count, poolPermits}};
    call.within = std::chrono::nanoseconds(waitFor + longestAnswer).count();
    const auto held =
        RecordedLock::tryToTake(recorder_, call, [&] { return pool_->tryAcquire(count, waitFor); });
    if (held) std::this_thread::sleep_for(milliseconds{below(50)});
  }

  void lockOne() {
    const std::string key = historyKeys[static_cast<std::size_t>(below(std::ssize(historyKeys)))];
    const Kind kind = hasShares_ && below(4) == 0 ? Kind::shared : Kind::exclusive;
    const LockOptions options = {.ttl = historyTtl, .waitFor = milliseconds{below(1500)}};
    auto held = RecordedLock::tryLock(recorder_, name_, manager_, key, options, kind,
                                      *options.waitFor + longestAnswer);
    if (!held) return;
    // One in ten needs renewals.
    const int uses = below(10) == 0 ? 20 : 1;
    for (int use = 0; use < uses && held->lock().valid() && ended == 0; ++use) {
      held->recordBelief();
      if (const auto fence = held->lock().fence()) this->use(key, kind, *fence, held->id());
      std::this_thread::sleep_for(milliseconds{uses > 1 ? 100 : below(20)});
    }
    // The others leave that to the destructor.
    if (below(4) > 0) held->release();
  }

  void use(const std::string& key, Kind kind, Fence fence, std::uint64_t grant) {
    const GuardedValue value(values_ / key);
    Record reading = {.process = name_, .operation = Operation::read, .key = key, .grant = grant};
    reading.id = recorder_.record(reading);
    reading.value = value.read(fence);
    reading.phase = reading.value ? Phase::ok : Phase::fail;
    recorder_.record(reading);
    if (!reading.value || kind == Kind::shared) return;
    Record writing = {.process = name_, .operation = Operation::write, .key = key, .grant = grant};
    writing.value = std::chrono::steady_clock::now().time_since_epoch().count();
    writing.id = recorder_.record(writing);
    writing.phase = value.write(fence, *writing.value) ? Phase::ok : Phase::fail;
    writing.value.reset();
    recorder_.record(writing);
  }

  const std::string name_;
  const std::filesystem::path values_;
  std::mt19937 random_;
  Recorder recorder_;
  const std::shared_ptr<LockDriver> driver_;
  LockManager manager_;
  const bool hasShares_;
  std::optional<Semaphore> pool_;
  std::optional<RateLimiter> limiter_;
};

}  // namespace
}  // namespace lockkeeper::test

int main(int count, char** arguments) {
  if (count != 6) return 64;
  std::signal(SIGTERM, [](int) { lockkeeper::test::ended = 1; });
  lockkeeper::test::Client(arguments[1], arguments[2], arguments[3],
                           static_cast<unsigned>(std::stoul(arguments[4])), arguments[5])
      .run();
  return 0;
}
