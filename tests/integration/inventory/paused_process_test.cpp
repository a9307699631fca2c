// A process that is paused in the middle of a transaction, or whose host is gone, keeps no row for hours.

#include <Poco/Data/Statement.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "database/database.h"
#include "fault_proxy.h"
#include "lockkeeper/mysql/server_rows.h"
#include "shop.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using inventory::Deduction;
using inventory::Restock;
using inventory::Return;
using inventory::StockService;
using inventory::Way;
using Poco::Data::Keywords::into;
using Poco::Data::Keywords::now;

/// The time of a process that is paused: it goes on where it stopped.
class PausedClock final : public Clock {
 public:
  Instant now() const noexcept override {
    return goesOn_ ? stopped_ + (systemClock()->now() - resumed_) : stopped_;
  }
  void wait(std::unique_lock<std::mutex>& held, std::condition_variable& wakeUp, Instant until) override {
    systemClock()->wait(held, wakeUp, saturatingAdd(systemClock()->now(), until - now()));
  }
  void goOn() {
    resumed_ = systemClock()->now();
    goesOn_ = true;
  }

 private:
  const Instant stopped_ = systemClock()->now();
  Instant resumed_{};
  std::atomic<bool> goesOn_ = false;
};

/// A transaction of several round trips on the article of its name.
struct PausedCall {
  std::string sku;
  Way way = Way::conditionalUpdate;
  /// What there must be before, besides ten pieces of the article.
  std::function<void(StockService&)> prepare = [](StockService&) {};
  /// Whether it has the right answer.
  std::function<bool(StockService&)> run;
  std::int64_t pieces = 0;  ///< How many it takes from stock.
};

bool isDeducted(StockService& service, const std::string& sku) {
  return service.deduct(sku, 1, sku) == Deduction::deducted;
}

const std::vector<PausedCall>& allCalls() {
  using State = inventory::ReservationState;
  static const std::vector<PausedCall> calls{
      {.sku = "group",
       .run = [](StockService& service) { return isDeducted(service, "group"); },
       .pieces = 1},
      {.sku = "one by one",
       .prepare = [](StockService& service) { (void)service.deduct("one by one", 1, "booked"); },
       .run =
           [](StockService& service) {
             return service.deduct("one by one", 1, "booked") == Deduction::duplicate;
           },
       .pieces = 1},
      {.sku = "fenced",
       .way = Way::fencedRow,
       .run = [](StockService& service) { return isDeducted(service, "fenced"); },
       .pieces = 1},
      {.sku = "optimistic",
       .way = Way::optimistic,
       .run = [](StockService& service) { return isDeducted(service, "optimistic"); },
       .pieces = 1},
      {.sku = "reserving",
       .run =
           [](StockService& service) {
             return service.reserve({{"reserving", 2}}, 1h, "reserving").state == State::held;
           },
       .pieces = 2},
      {.sku = "reserving two",
       .prepare = [](StockService& service) { service.restock("second article", 5); },
       .run =
           [](StockService& service) {
             return service.reserve({{"reserving two", 2}, {"second article", 1}}, 1h, "two").state ==
                    State::held;
           },
       .pieces = 2},
      {.sku = "confirming",
       .prepare =
           [](StockService& service) {
             (void)service.reserve({{"confirming", 1}}, 1h, "confirming");
           },
       .run = [](StockService& service) { return service.confirm("confirming") == State::confirmed; },
       .pieces = 1},
      {.sku = "extending",
       .prepare =
           [](StockService& service) {
             (void)service.reserve({{"extending", 1}}, 1h, "extending");
           },
       .run = [](StockService& service) { return service.extend("extending", 2h) == State::held; },
       .pieces = 1},
      {.sku = "cancelling",
       .prepare =
           [](StockService& service) {
             (void)service.reserve({{"cancelling", 1}}, 1h, "cancelling");
           },
       .run = [](StockService& service) { return service.cancel("cancelling") == State::cancelled; }},
      {.sku = "replacing",
       .prepare =
           [](StockService& service) {
             (void)service.reserve({{"replacing", 1}}, 1h, "replacing");
           },
       .run =
           [](StockService& service) {
             return service.replace({{"replacing", 3}}, 1h, "replacing").state == State::held;
           },
       .pieces = 3},
      {.sku = "restocking",
       .run =
           [](StockService& service) {
             return service.restock("restocking", 3, "restocking") == Restock::restocked;
           },
       .pieces = -3},
      {.sku = "taking back",
       .prepare = [](StockService& service) { (void)service.deduct("taking back", 2, "sold"); },
       .run =
           [](StockService& service) {
             return service.takeBack("sold", "taking back", 1, "taking back") == Return::returned;
           },
       .pieces = 1},
      {.sku = "splitting", .run = [](StockService& service) { return service.split("splitting", 2); }},
      {.sku = "sweeping",
       .prepare =
           [](StockService& service) {
             (void)service.reserve({{"sweeping", 1}}, 1ms, "sweeping");
           },
       .run = [](StockService& service) { return service.sweepExpired() == 1; }},
  };
  return calls;
}

/// A call that is stopped when its COMMIT should reach the server.
class Paused {
 public:
  Paused(Shop& shop, const PausedCall& call)
      : proxy_(serverOf(shop.backend()).port()),
        service_(shop.uriBy(proxy_.port()), shop.manager(), call.way,
                 {.operationTimeout = 1s, .environment = {.clock = clock_}}) {
    (void)service_.level(call.sku);
    proxy_.set({.kind = ProxyFault::Kind::step, .text = commitTo(shop.backend())});
    answer_ = std::async(std::launch::async, [this, &call] { return call.run(service_); });
  }

  bool isPaused() {
    return waitUntil([this] { return proxy_.fired() == 1; });
  }
  /// Whether it has the right answer then.
  bool goesOn() {
    clock_->goOn();
    proxy_.passThrough();
    return answer_.get();
  }

 private:
  const std::shared_ptr<PausedClock> clock_ = std::make_shared<PausedClock>();
  FaultProxy proxy_;
  StockService service_;
  std::future<bool> answer_{};
};

class PausedProcess : public ::testing::TestWithParam<Backend> {
 protected:
  Shop shop{GetParam()};
  StockService service = shop.service(Way::conditionalUpdate, {.operationTimeout = 1s});
};

TEST_P(PausedProcess, KeepsNoArticleFromOthersAndSellsNothingTwice) {
  for (const PausedCall& each : allCalls()) {
    service.restock(each.sku, 10);
    each.prepare(service);
  }
  std::vector<std::pair<const PausedCall*, std::unique_ptr<Paused>>> paused;
  for (const PausedCall& each : allCalls()) {
    paused.emplace_back(&each, std::make_unique<Paused>(shop, each));
    EXPECT_TRUE(paused.back().second->isPaused()) << each.sku;
  }
  const Instant allPaused = systemClock()->now();
  for (const auto& [call, process] : paused) {
    const std::string& sku = call->sku;
    EXPECT_TRUE(waitUntil([&] { return service.deduct(sku, 1, "other " + sku) == Deduction::deducted; }))
        << sku;
  }
  // One second for the limit, one for the server to see it, and the rest for a busy machine.
  EXPECT_LT(systemClock()->now() - allPaused, 10s);
  for (const auto& [call, process] : paused) {
    const std::string& sku = call->sku;
    EXPECT_TRUE(process->goesOn()) << sku;
    EXPECT_EQ(shop.level(sku), 10 - 1 - call->pieces) << sku;
    EXPECT_EQ(shop.ledger(sku), shop.level(sku)) << sku;
  }
}

TEST_P(PausedProcess, IsToldThatItsTransactionIsUndone) {
  service.restock("pen", 10);
  inventory::Database database(
      shop.uri(), {.operationTimeout = 1s, .environment = {.clock = std::make_shared<PausedClock>()}});
  const bool isPostgres = GetParam() == Backend::postgres;
  auto transaction = database.begin();
  const auto session =
      transaction.select(isPostgres ? "SELECT pg_backend_pid()" : "SELECT CONNECTION_ID()", {})
          .value()
          .front();
  EXPECT_EQ(transaction.execute("UPDATE lockkeeper_stock SET level = 3 WHERE sku = 'pen'", {}), 1U);
  const std::string id = std::to_string(std::get<std::int64_t>(session));
  Poco::Data::Session watching = shop.session();
  EXPECT_TRUE(waitUntil([&] {
    std::int64_t sessions = 0;
    watching << (isPostgres ? "SELECT COUNT(*) FROM pg_stat_activity WHERE pid = "
                            : "SELECT COUNT(*) FROM information_schema.processlist WHERE id = ") +
                    id,
        into(sessions), now;
    return sessions == 0;
  }));
  // Certainly undone, and worth another attempt.
  EXPECT_THROW(transaction.commit(), StoreUnavailable);
  EXPECT_EQ(shop.level("pen"), 10);
}

using PausedProcessOfTwoBrands = PausedProcess;

TEST_P(PausedProcessOfTwoBrands, LeavesTheServersOwnLimitToASessionThatIsFree) {
  mysql::ServerRows rows(StoreUri::parse(shop.uri()), {.sessions = 1});
  const auto limit = [&] {
    auto reading = rows.begin(Instant::max(), mysql::ServerRows::Access::read);
    return reading.select("SELECT @@SESSION.wait_timeout = @@GLOBAL.wait_timeout, CONNECTION_ID()", {})
        .value();
  };
  const auto before = limit();
  EXPECT_EQ(std::get<std::int64_t>(before.front()), 1);
  {
    auto committed = rows.begin();
    EXPECT_EQ(committed.select("SELECT @@SESSION.wait_timeout", {}).value(), mysql::SqlRow{std::int64_t{2}});
    committed.commit();
  }
  EXPECT_EQ(limit(), before);
  { EXPECT_TRUE(rows.begin().select("SELECT 1", {})) << "and is rolled back"; }
  EXPECT_EQ(limit(), before);
}

INSTANTIATE_TEST_SUITE_P(All, PausedProcess, ::testing::ValuesIn(allServers),
                         [](const auto& each) { return nameOf(each.param); });
INSTANTIATE_TEST_SUITE_P(All, PausedProcessOfTwoBrands, ::testing::ValuesIn(mysqlServers),
                         [](const auto& each) { return nameOf(each.param); });

}  // namespace
}  // namespace lockkeeper::test
