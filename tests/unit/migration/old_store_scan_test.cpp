#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fleet_fixture.h"

namespace lockkeeper::migration {
namespace {

/// What is in the old store, and what all processes have listed of it, in order.
struct ScanLog {
  struct Page {
    std::string label;
    int number;
  };
  std::mutex mutex;
  std::vector<Page> listed;
  int pages = 450;
  /// The labels of those that hold locks on the fourth page.
  std::vector<std::string> holders;
  int failOnceAt = -1;
  /// Runs when the fourth page is listed.
  std::function<void()> onFourth = [] {};

  void hold(std::vector<std::string> labels) {
    const std::lock_guard guard(mutex);
    holders = std::move(labels);
  }
  std::vector<Page> all() {
    const std::lock_guard guard(mutex);
    return listed;
  }
};

/// A store with many pages of keys, as one process sees it.
class PagedStore final : public PlainDecorator, public Browsable {
 public:
  PagedStore(std::shared_ptr<LockDriver> inner, std::shared_ptr<ScanLog> log, std::string label)
      : PlainDecorator(std::move(inner)), log_(std::move(log)), label_(std::move(label)) {}
  std::atomic<bool> down{false};

  void list(std::string_view, const std::function<bool(std::string_view key, const Holder& holder)>&,
            Instant) override {
    ADD_FAILURE() << "lists the whole store";
  }
  std::string listBusy(std::string_view place, const std::function<bool(std::string_view key)>&,
                       const std::function<bool(std::string_view key, const Holder& holder)>& visit,
                       Instant) override {
    const int number = place.empty() ? 0 : std::stoi(std::string(place));
    const std::lock_guard guard(log_->mutex);
    log_->listed.push_back({label_, number});
    if (down) throw StoreUnavailable("the old store is down, says the test");
    if (std::exchange(log_->failOnceAt, number == log_->failOnceAt ? -1 : log_->failOnceAt) == number) {
      throw StoreUnavailable("the old store fails, says the test");
    }
    if (number == 3) {
      log_->onFourth();
      for (const std::string& label : log_->holders) {
        if (!visit("old key", Holder{.owner = label, .remaining = {}, .fence = {}})) break;
      }
    }
    return number + 1 >= log_->pages ? "" : std::to_string(number + 1);
  }
  void* findCapability(const std::type_info& type) noexcept override {
    return capabilityOf<Browsable>(*this, type);
  }

 private:
  const std::shared_ptr<ScanLog> log_;
  const std::string label_;
};

class Scan : public Fleet {
 protected:
  static constexpr int mostAtOnce = 16;  // outsiders that are told of at once

  Scan() {
    options.observation = 0s;
    decree("both");
  }

  Process joinScanning(const std::string& label) {
    Process made = start("both", label);
    const auto store = std::make_shared<PagedStore>(oldStore, log, label);
    paged.push_back(store);
    made.driver = std::make_shared<MigratingDriver>(
        store, newStore, made.records, options,
        Environment{clock, std::make_shared<FakeRandom>(90 + hearts), made.notes});
    ++hearts;
    EXPECT_EQ(stores(made), "old+new");
    EXPECT_TRUE(clock->awaitWaiters(hearts));
    return made;
  }

  /// That a scan finds it, however often it is repeated, and that the step is taken when it has gone.
  void expectToSeeTheOutsider(const Process& process) {
    EXPECT_EQ(stores(process), "old+new");
    EXPECT_TRUE(stateStore.read(soon()).inTheWay);
    log->hold({});
    pass(std::chrono::seconds(log->pages / 50) + options.lease);
    EXPECT_EQ(stores(process), "new");
  }

  const std::shared_ptr<ScanLog> log = std::make_shared<ScanLog>();
  std::vector<std::shared_ptr<PagedStore>> paged;
};

TEST_F(Scan, IsDoneByOneOfFourWhoGoesOnWhereTheOneBeforeHasStopped) {
  std::vector<Process> fleet;
  for (const char* label : {"a:1", "b:1", "c:1", "d:1"}) fleet.push_back(joinScanning(label));
  pass(options.lease + options.maxTtl);
  advance("modern");
  pass(2s);
  const auto before = log->all();
  ASSERT_FALSE(before.empty());
  ASSERT_LT(before.size(), static_cast<std::size_t>(log->pages)) << "too many at once";
  end(fleet.front());
  const auto ended = [&] {
    const auto listed = log->all();
    return std::ranges::any_of(listed, [&](const auto& page) { return page.number + 1 == log->pages; });
  };
  for (int i = 0; i < 20 && !ended(); ++i) pass(1s);
  ASSERT_TRUE(ended());
  // Several may take the role with the same heartbeat; all but one give way with the next one.
  std::map<std::string, int> next;
  std::string last;
  for (const auto& [label, number] : log->all()) {
    const auto [place, isNew] = next.try_emplace(label, number);
    if (isNew) {
      EXPECT_EQ(number == 0, label == "a:1") << label << " begins at " << number;
    }
    EXPECT_EQ(number, place->second++) << label;
    last = label;
    if (number + 1 == log->pages) break;
  }
  EXPECT_EQ(next.at("a:1"), static_cast<int>(before.size()));
  EXPECT_EQ(next.at(last), log->pages);
}

TEST_F(Scan, ListsAtMostAHundredPagesASecond) {
  const Process process = joinScanning("a:1");
  advance("modern");
  std::size_t before = 0;
  for (int i = 0; i < 50; ++i) {
    pass(1s);
    const std::size_t now = log->all().size();
    EXPECT_LE(now - before, 100U);
    before = now;
  }
  EXPECT_EQ(stores(process), "new");
}

TEST_F(Scan, OneThatHasFailedIsNotRepeatedAtEachHeartbeat) {
  const Process process = joinScanning("a:1");
  paged.front()->down = true;
  advance("modern");
  pass(60s);
  EXPECT_LE(log->all().size(), static_cast<std::size_t>(60s / (options.lease / 3)) + 2);
  EXPECT_TRUE(process.notes->mention("could not be looked through")) << process.notes->all();
  paged.front()->down = false;
  pass(2 * (options.lease + options.maxTtl) + 5s);  // others may try before it watches again
  EXPECT_EQ(stores(process), "new");
}

TEST_F(Scan, BeginsAtTheFirstPageAfterItHasFoundAnOutsider) {
  log->hold({"php"});
  const Process process = joinScanning("a:1");
  advance("modern");
  pass(options.lease + options.maxTtl + 20s);
  expectToSeeTheOutsider(process);
}

TEST_F(Scan, BeginsAtTheFirstPageWhenWhatItHasFoundCannotBeReported) {
  const Process process = joinScanning("a:1");
  advance("modern");
  pass(options.lease + options.maxTtl - 5s);
  auto failing = std::make_shared<std::atomic<int>>(0);
  log->onFourth = [failing] { failing->exchange(*failing == 0 ? 1 : 2); };
  process.records->before = [failing](std::string_view call) {
    int once = 1;
    if (call == "read" && failing->compare_exchange_strong(once, 2)) throw StoreUnavailable("once");
  };
  log->hold({"php"});
  pass(20s);
  ASSERT_EQ(*failing, 2);
  expectToSeeTheOutsider(process);
}

TEST_F(Scan, BeginsAtTheFirstPageWhenTheRestOfAPageWasNotLookedAt) {
  std::vector<std::string> labels(mostAtOnce, "late:1~");
  labels.emplace_back("php");
  log->hold(labels);
  const Process process = joinScanning("a:1");
  advance("modern");
  log->onFourth = [this, joined = false]() mutable {
    if (std::exchange(joined, true)) return;
    const MigrationState state = stateStore.read(soon());
    MigrationState known;
    Member late{.id = "late", .labels = {"late:1~"}, .version = state.version};
    late.lease = options.lease;
    late.locksEndAfter = options.lease + options.maxTtl;
    stateStore.heartbeat(late, known, soon());
  };
  pass(options.lease + options.maxTtl + 20s);
  expectToSeeTheOutsider(process);
}

TEST_F(Scan, WhatAnotherHasLookedThroughDoesNotCount) {
  log->hold({"php"});
  const Process process = joinScanning("a:1");
  advance("modern");
  const std::uint64_t version = stateStore.read(soon()).version;
  for (auto passed = 0s; passed < options.lease + options.maxTtl + 20s; passed += 1s) {
    stateStore.scanned({version, "440"}, 1min, soon());
    pass(1s);
  }
  expectToSeeTheOutsider(process);
}

TEST_F(Scan, APassDoesNotCountThatBeganBeforeAPause) {
  log->pages = 6000;
  const Process process = joinScanning("a:1");
  advance("modern");
  pass(2s);
  stateClock->advance(options.lease + 1s);
  clock->advance(options.lease + 1s);
  ASSERT_TRUE(clock->awaitWaiters(hearts));
  log->hold({"php"});
  pass(70s);
  expectToSeeTheOutsider(process);
}

TEST_F(Scan, GoesOnAtThePageThatHasFailed) {
  log->failOnceAt = 50;
  const Process process = joinScanning("a:1");
  advance("modern");
  const std::size_t all = static_cast<std::size_t>(log->pages) + 1;
  for (int i = 0; i < 20 && log->all().size() < all; ++i) pass(1s);
  const auto listed = log->all();
  ASSERT_GE(listed.size(), all);
  for (std::size_t i = 0; i < all; ++i) EXPECT_EQ(listed[i].number, static_cast<int>(i > 50 ? i - 1 : i));
}

TEST_F(Scan, AnotherTriesWhenOneCannotLookThroughTheStore) {
  const Process first = joinScanning("a:1");
  const Process second = joinScanning("b:1");
  paged.front()->down = true;
  advance("modern");
  pass(3 * options.lease + options.lease + options.maxTtl + 10s);
  EXPECT_EQ(stores(second), "new");
}

}  // namespace
}  // namespace lockkeeper::migration
