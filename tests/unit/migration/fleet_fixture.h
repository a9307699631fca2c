#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "decorators.h"
#include "lock/faulty_driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/memory/memory_driver.h"
#include "lockkeeper/migration/migrating_driver.h"
#include "lockkeeper/migration/state_store.h"
#include "lockkeeper/testing/fake_clock.h"
#include "lockkeeper/testing/fake_random.h"

#include <gtest/gtest.h>

namespace lockkeeper::migration {

using namespace std::chrono_literals;
using test::Call;
using test::Fault;
using test::FaultyDriver;
using test::PlainDecorator;
using testing::FakeClock;
using testing::FakeRandom;

/// Records that can be out of reach.
class FaultyRecords final : public SharedRecords {
 public:
  explicit FaultyRecords(std::shared_ptr<SharedRecords> inner) : inner_(std::move(inner)) {}
  std::atomic<bool> down{false};
  std::atomic<bool> broken{false};  // throws what no store should
  /// While the test holds it, nothing is written.
  std::mutex stalled;
  std::atomic<int> heartbeats{0};  // begun
  std::atomic<int> departures{0};  // ended, whether they were written or not
  /// Runs before each "write", "read" and "replace", on the thread that calls.
  std::function<void(std::string_view call)> before = [](std::string_view) {};
  /// Runs when a read has ended, before the caller knows of it.
  std::function<void()> afterRead = [] {};
  std::atomic<int> replacements{0};  // ended
  std::atomic<int> refusals{0};      // those of them that have not written

  std::vector<SharedRecord> write(std::string_view table, std::string_view name, std::string_view text,
                                  std::optional<std::chrono::milliseconds> keep,
                                  std::span<const WantedRecord> wanted, Instant deadline) override {
    struct Ended {
      FaultyRecords& records;
      const bool departure;
      ~Ended() {
        if (!departure) return;
        ++records.departures;
        records.departures.notify_all();
      }
    } ended{*this, text.starts_with("departed")};
    before("write");
    ++heartbeats;
    heartbeats.notify_all();
    const std::lock_guard stall(stalled);
    return reached().write(table, name, text, keep, wanted, deadline);
  }
  std::vector<SharedRecord> read(std::string_view table, Instant deadline) override {
    before("read");
    auto all = reached().read(table, deadline);
    afterRead();
    return all;
  }
  bool replace(std::string_view table, std::string_view name, const std::optional<std::string>& expected,
               std::string_view text, std::span<const KnownRecord> known, Instant deadline) override {
    before("replace");
    const bool written = reached().replace(table, name, expected, text, known, deadline);
    if (!written) ++refusals;
    ++replacements;
    return written;
  }

 private:
  SharedRecords& reached() const {
    if (down) throw StoreUnavailable("the state store is down, says the test");
    if (broken) throw std::runtime_error("broken, says the test");
    return *inner_;
  }

  const std::shared_ptr<SharedRecords> inner_;
};

/// A store where something happens before somebody looks through it.
class LookedThrough final : public PlainDecorator, public Browsable {
 public:
  using PlainDecorator::PlainDecorator;

  std::function<void()> before;

  void list(std::string_view prefix,
            const std::function<bool(std::string_view key, const Holder& holder)>& visit,
            Instant deadline) override {
    before();
    capability<Browsable>(*inner_)->list(prefix, visit, deadline);
  }
  void* findCapability(const std::type_info& type) noexcept override {
    return capabilityOf<Browsable>(*this, type);
  }
};

/// What an operator would read.
class Notes final : public Listener {
 public:
  void on(const Event& event) override {
    const std::lock_guard guard(mutex_);
    if (event.kind == EventKind::phaseChanged) rules_.emplace_back(event.text);
    if (event.kind != EventKind::noted) return;
    all_.append(event.text).append("\n");
  }
  bool mention(std::string_view text) const {
    const std::lock_guard guard(mutex_);
    return all_.find(text) != std::string::npos;
  }
  /// The rules in force, one after the other.
  std::vector<std::string> rules() const {
    const std::lock_guard guard(mutex_);
    return rules_;
  }
  std::string all() const {
    const std::lock_guard guard(mutex_);
    return all_;
  }

 private:
  mutable std::mutex mutex_;
  std::string all_;
  std::vector<std::string> rules_;
};

/// One process of the fleet.
struct Process {
  std::shared_ptr<FaultyDriver> oldStore;
  std::shared_ptr<FaultyDriver> newStore;
  std::shared_ptr<FaultyRecords> records;
  std::shared_ptr<Notes> notes = std::make_shared<Notes>();
  std::string label;
  std::shared_ptr<MigratingDriver> driver;
};

struct Claimant {
  std::string key;
  std::string label = "outsider:1";
  Token token = Token::generate(*systemRandom());
  Claim claim() const { return {key, token, label}; }
};

/// Processes that share two stores in memory, on a clock that the test moves.
class Fleet : public ::testing::Test {
 protected:
  static constexpr std::chrono::milliseconds ttl = 20s;

  Fleet() {
    options.heartbeat = 1s;
    options.lease = 10s;
    options.maxTtl = 30s;
    options.observation = 60s;
  }

  Process start(const std::string& rules, const std::string& label) {
    Process made;
    made.label = label;
    made.oldStore = std::make_shared<FaultyDriver>(oldStore);
    made.newStore = std::make_shared<FaultyDriver>(newStore);
    made.records = std::make_shared<FaultyRecords>(records);
    options.rules = Rules::parse(rules);
    made.driver = std::make_shared<MigratingDriver>(
        made.oldStore, made.newStore, made.records, options,
        Environment{clock, std::make_shared<FakeRandom>(++seed_), made.notes});
    return made;
  }

  /// A process that has joined the migration.
  Process join(const std::string& rules, const std::string& label) {
    Process made = start(rules, label);
    const Claimant who{"joining " + label, label};
    ++hearts;
    EXPECT_TRUE(takes(made, who));
    made.driver->release(who.claim(), soon());
    EXPECT_TRUE(clock->awaitWaiters(hearts));
    return made;
  }
  void end(Process& process) {
    process.driver.reset();
    --hearts;
  }

  /// Lets time pass, heartbeat by heartbeat.
  void pass(std::chrono::milliseconds length) {
    for (auto passed = 0ms; passed < length; passed += 1s) {
      stateClock->advance(1s);
      clock->advance(1s);
      ASSERT_TRUE(clock->awaitWaiters(hearts));
    }
  }
  /// Heartbeats at once: enough for everybody to see what the others have seen.
  void letChangeComplete() { pass(3s); }

  /// As an operator would write them, in force at once.
  void decree(const std::string& rules) { write(Rules::parse(rules), Rules::parse(rules)); }
  /// As the operator's target.
  void advance(const std::string& rules) { write(stateStore.read(soon()).current, Rules::parse(rules)); }

  AcquireResult ask(const Process& by, const Claimant& who, bool resend = false) {
    return by.driver->acquire({who.claim(), ttl, soon(), resend});
  }
  bool takes(const Process& by, const Claimant& who) { return std::holds_alternative<Granted>(ask(by, who)); }
  RenewOutcome renew(const Process& by, const Claimant& who) {
    Renewal renewal{.claim = who.claim(), .ttl = ttl};
    by.driver->renew({&renewal, 1}, soon());
    return renewal.outcome;
  }
  /// In which stores a lock that the process takes now is held: "old", "new", "old+new".
  std::string stores(const Process& by) {
    const Claimant who{"key " + std::to_string(++keys_), by.label};
    return stores(by, who);
  }
  std::string stores(const Process& by, const Claimant& who) {
    EXPECT_TRUE(takes(by, who));
    std::string where = held(who.key);
    EXPECT_EQ(by.driver->release(who.claim(), soon()), ReleaseOutcome::released);
    EXPECT_EQ(held(who.key), "");
    return where;
  }
  std::string held(const std::string& key) {
    std::string where = oldStore->holder(key, soon()) ? "old" : "";
    if (newStore->holder(key, soon())) where += where.empty() ? "new" : "+new";
    return where;
  }

  Instant soon() const { return clock->now() + 5s; }

  std::shared_ptr<FakeClock> clock = std::make_shared<FakeClock>();
  std::shared_ptr<MemoryDriver> oldStore = std::make_shared<MemoryDriver>(clock);
  std::shared_ptr<MemoryDriver> newStore = std::make_shared<MemoryDriver>(clock);
  MigrationOptions options;
  /// Of the store that keeps the state.
  std::shared_ptr<FakeClock> stateClock = std::make_shared<FakeClock>();
  std::shared_ptr<MemoryDriver> stateKeeper = std::make_shared<MemoryDriver>(stateClock);
  std::shared_ptr<SharedRecords> records = capability<SharedRecords>(stateKeeper);
  StateStore stateStore{records, options.name};
  std::size_t hearts = 0;

 private:
  void write(const Rules& current, const Rules& target) {
    const MigrationState state = stateStore.read(soon());
    ASSERT_TRUE(stateStore.change(state, state.version + 1, current, target, soon()));
  }

  std::uint64_t seed_ = 0;
  int keys_ = 0;
};

}  // namespace lockkeeper::migration
