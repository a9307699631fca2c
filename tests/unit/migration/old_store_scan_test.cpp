#include <algorithm>
#include <vector>

#include "fleet_fixture.h"

namespace lockkeeper::migration {
namespace {

constexpr int pages = 450;

/// What all processes have listed, in order.
struct ScanLog {
  struct Page {
    std::string label;
    int number;
  };
  std::mutex mutex;
  std::vector<Page> listed;

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
                       const std::function<bool(std::string_view key, const Holder& holder)>&,
                       Instant) override {
    const int number = place.empty() ? 0 : std::stoi(std::string(place));
    const std::lock_guard guard(log_->mutex);
    log_->listed.push_back({label_, number});
    if (down) throw StoreUnavailable("the old store is down, says the test");
    return number + 1 == pages ? "" : std::to_string(number + 1);
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
  ASSERT_LT(before.size(), static_cast<std::size_t>(pages)) << "too many at once";
  end(fleet.front());
  for (int i = 0; i < 20 && log->all().size() < pages; ++i) pass(1s);
  const auto listed = log->all();
  ASSERT_GE(listed.size(), static_cast<std::size_t>(pages));
  for (int i = 0; i < pages; ++i) {
    const auto& [label, number] = listed.at(static_cast<std::size_t>(i));
    EXPECT_EQ(number, i) << label;
    EXPECT_EQ(label, i < static_cast<int>(before.size()) ? "a:1" : listed.at(before.size()).label) << i;
  }
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
  pass(15s);
  EXPECT_EQ(stores(process), "new");
}

}  // namespace
}  // namespace lockkeeper::migration
