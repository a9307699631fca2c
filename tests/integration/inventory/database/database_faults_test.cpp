// What becomes of an order when the server, or the way to it, fails in the middle.

#include <Poco/Data/Statement.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <future>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "database/database.h"
#include "fault_proxy.h"
#include "lockkeeper/mysql/server_rows.h"
#include "shop.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using inventory::Deduction;
using inventory::StockOptions;
using inventory::StockService;
using inventory::Way;
using Poco::Data::Keywords::into;
using Poco::Data::Keywords::now;

const StockOptions veryImpatient{.operationTimeout = std::chrono::seconds{1}};

class DatabaseFaults : public ::testing::TestWithParam<Backend> {
 protected:
  StockServer& server = serverOf(GetParam());
  Shop shop{GetParam()};
  StockService service = shop.service(Way::conditionalUpdate, veryImpatient);
};

// The cut may hit any statement, or the answer to COMMIT: in the end the answer and the books must agree.
void endInTheTruth(StockServer& server, Shop& shop, Way way) {
  FaultProxy proxy(server.port());
  StockService service = shop.service(way, veryImpatient);
  StockService distant(shop.uriBy(proxy.port()), shop.manager(), way, veryImpatient);
  constexpr int stock = 1'000'000;
  service.restock("pen", stock);
  ASSERT_EQ(distant.deduct("pen", 1, "connect"), Deduction::deducted);
  proxy.passThrough();
  ASSERT_EQ(distant.deduct("pen", 1, "measure"), Deduction::deducted);
  const std::size_t replyBytes = proxy.replyBytes();
  ASSERT_GT(replyBytes, 50U);

  for (const Ending ending : {Ending::fin, Ending::rst}) {
    for (std::size_t bytes = 0; bytes < replyBytes; ++bytes) {
      const std::string id = std::to_string(static_cast<int>(ending)) + ":" + std::to_string(bytes);
      proxy.cutReplies(bytes, ending);
      EXPECT_EQ(distant.deduct("pen", 1, id), Deduction::deducted) << "cut after " << bytes << " bytes";
      EXPECT_EQ(proxy.fired(), 1U) << "nothing was cut after " << bytes << " bytes";
      EXPECT_TRUE(shop.booked(id)) << "cut after " << bytes << " bytes";
    }
  }
  EXPECT_EQ(shop.level("pen") + shop.sold("pen"), stock);
}

TEST_P(DatabaseFaults, EveryCutReplyEndsInTheTruth) { endInTheTruth(server, shop, Way::conditionalUpdate); }

TEST_P(DatabaseFaults, EveryCutReplyToAnOptimisticOrderEndsInTheTruth) {
  endInTheTruth(server, shop, Way::optimistic);
}

using MysqlFaults = DatabaseFaults;

// KILL QUERY, or a time limit of the server, may hit a COMMIT when it is done; so may a fault of its disk.
TEST_P(MysqlFaults, AnErrorInPlaceOfAReplyEndsInTheTruth) {
  FaultProxy proxy(server.port());
  StockService distant(shop.uriBy(proxy.port()), shop.manager(), Way::conditionalUpdate, veryImpatient);
  service.restock("pen", 10);
  ASSERT_EQ(distant.deduct("pen", 1, "connect"), Deduction::deducted);
  int left = 9;
  for (const auto error : std::initializer_list<std::uint16_t>{1317, 1180, 1598, 1026}) {
    // In place of the answer to COMMIT, the second statement of its batch.
    proxy.set({.kind = ProxyFault::Kind::replace, .text = DatabaseServer::refusal(error, 1), .requests = 1});
    const std::string order = "error " + std::to_string(error);
    EXPECT_EQ(distant.deduct("pen", 1, order), Deduction::deducted) << error;
    EXPECT_EQ(proxy.fired(), 1U);
    EXPECT_TRUE(shop.booked(order));
    EXPECT_EQ(shop.level("pen"), --left);
  }
  proxy.set({.kind = ProxyFault::Kind::replace, .text = DatabaseServer::refusal(1317, 1), .requests = 1});
  EXPECT_NO_THROW(distant.restock("ink", 5));
  EXPECT_EQ(proxy.fired(), 1U);
  EXPECT_EQ(shop.level("ink"), 5) << "it was not done twice";
}

/// Once the proxy has cut a reply, the time of a call is over, until passThrough().
class OverWithTheReply final : public Clock {
 public:
  explicit OverWithTheReply(const FaultProxy& proxy) : proxy_(proxy) {}

  Instant now() const noexcept override {
    const Instant present = systemClock()->now();
    return proxy_.fired() == 0 ? present : present + std::chrono::hours{1};
  }
  void wait(std::unique_lock<std::mutex>& held, std::condition_variable& wakeUp, Instant until) override {
    systemClock()->wait(held, wakeUp, until);
  }

 private:
  const FaultProxy& proxy_;
};

// The service has remembered that the article is sold out, and is not told that its call has put pieces back.
TEST_P(DatabaseFaults, WhatACallInDoubtHasPutBackIsSoldAtOnce) {
  FaultProxy proxy(server.port());
  StockService distant(shop.uriBy(proxy.port()), shop.manager(), Way::conditionalUpdate,
                       {.operationTimeout = std::chrono::seconds{4},
                        .rememberSoldOut = std::chrono::minutes{1},
                        .environment = {.clock = std::make_shared<OverWithTheReply>(proxy)}});
  distant.restock("ink", 9);
  const auto sellOut = [&](const std::string& sku) {
    distant.restock(sku, 1);
    ASSERT_EQ(distant.reserve({{sku, 1}}, std::chrono::hours{1}, sku).state,
              inventory::ReservationState::held);
    ASSERT_EQ(distant.deduct(sku, 1, "too early for " + sku), Deduction::soldOut);
  };
  const std::vector<std::function<void(const std::string&)>> calls{
      [&](const std::string& cart) {
        (void)distant.replace({{"ink", 1}}, std::chrono::hours{1}, cart);
      },
      [&](const std::string& cart) { (void)distant.cancel(cart); }};
  for (std::size_t call = 0; call < calls.size(); ++call) {
    const std::string measured = "pen 1" + std::to_string(call), sku = "pen 2" + std::to_string(call);
    sellOut(measured);
    sellOut(sku);
    proxy.passThrough();
    calls[call](measured);
    proxy.cutReplies(proxy.replyBytes() - 4, Ending::rst);  // in the answer to COMMIT
    EXPECT_THROW(calls[call](sku), OutcomeUnknown);
    proxy.passThrough();
    EXPECT_EQ(shop.level(sku), 1) << "it was done";
    EXPECT_EQ(distant.deduct(sku, 1, "in time for " + sku), Deduction::deducted);
  }
}

/// Only MariaDB lets a test hold commits back.
class HeldCommits : public DatabaseFaults {};

// The connection is gone, but the server is still at the COMMIT: whoever looks too early sees no order.
TEST_P(HeldCommits, ACommitThatTakesLongIsWaitedFor) {
  FaultProxy proxy(server.port());
  StockService distant(shop.uriBy(proxy.port()), shop.manager(), Way::conditionalUpdate,
                       {.operationTimeout = std::chrono::seconds{30}});
  service.restock("pen", 10);
  Poco::Data::Session backup = shop.session();
  for (const char* stage : {"START", "FLUSH", "BLOCK_DDL", "BLOCK_COMMIT"}) {
    backup << std::string("BACKUP STAGE ") + stage, now;
  }
  auto result = std::async(std::launch::async, [&] { return distant.deduct("pen", 1, "order"); });
  Poco::Data::Session watching = shop.session();
  const auto counts = [&](const std::string& query) {
    std::int64_t count = 0;
    watching << query, into(count), now;
    return count;
  };
  EXPECT_TRUE(waitUntil([&] {
    return counts(
               "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'shop' AND info = "
               "'COMMIT'") == 1;
  })) << "it hangs in COMMIT";
  proxy.endConnections(Ending::rst);
  EXPECT_TRUE(waitUntil([&] { return shop.rowLockWaits() == 1; }))
      << "it waits for what becomes of the order";
  const std::size_t connections = proxy.connections();
  proxy.endConnections(Ending::rst);
  EXPECT_TRUE(waitUntil([&] { return proxy.connections() > connections; }))
      << "and asks again when that connection is lost as well";
  backup << "BACKUP STAGE END", now;
  EXPECT_EQ(result.get(), Deduction::deducted);
  EXPECT_EQ(shop.level("pen"), 9);
}

/// Orders from four threads go on, each until its fate is known, while `fault` strikes again and again: until
/// it has counted `leastFaults`, and some orders got through after each.
void orderThrough(Shop& shop, StockService& service, int leastFaults, const std::function<int()>& fault) {
  constexpr int stock = 1'000'000;
  constexpr int threadCount = 4;
  constexpr int ordersBetweenFaults = 20;
  service.restock("pen", stock);
  std::atomic<bool> done = false;
  std::atomic<int> deducted = 0;
  std::atomic<int> inDoubt = 0;
  const auto order = [&](const std::string& id) {
    for (bool mayBeBooked = false; !done;) {
      try {
        switch (service.deduct("pen", 1, id)) {
          case Deduction::deducted:
            ++deducted;
            return;
          case Deduction::duplicate:
            EXPECT_TRUE(mayBeBooked) << "nobody else orders " << id;
            return;
          case Deduction::conflict:
            break;
          default:
            ADD_FAILURE() << "there is enough of it";
        }
      } catch (const StoreUnavailable&) {  // Certainly not booked.
      } catch (const OutcomeUnknown&) {
        ++inDoubt;
        mayBeBooked = true;
      }
    }
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < threadCount; ++thread) {
    threads.emplace_back([&, thread] {
      for (int count = 0; !done; ++count) order(std::to_string(thread) + "-" + std::to_string(count));
    });
  }
  int faults = 0;
  int goodUntil = 0;
  EXPECT_TRUE(waitUntil(
      [&] {
        if (deducted < goodUntil) return false;
        goodUntil = deducted + ordersBetweenFaults;
        return (faults += fault()) >= leastFaults;
      },
      std::chrono::seconds{100}))
      << faults << " faults, " << deducted << " orders";
  EXPECT_TRUE(waitUntil([&] { return deducted >= goodUntil; })) << "no orders after the last fault";
  done = true;
  for (auto& thread : threads) thread.join();
  EXPECT_GE(shop.orders("pen"), deducted);
  EXPECT_LE(shop.orders("pen"), deducted + inDoubt);
  EXPECT_EQ(shop.level("pen") + shop.sold("pen"), stock);
}

TEST_P(DatabaseFaults, KilledSessionsLoseAndDoubleNothing) {
  orderThrough(shop, service, 50, [&] { return server.killSessions(); });
}

TEST_P(DatabaseFaults, ServersThatDieInTheMiddleLoseAndDoubleNothing) {
  orderThrough(shop, service, 3, [&] {
    server.restart();
    return 1;
  });
}

TEST_P(DatabaseFaults, AKilledServerIsUnavailableUntilItIsBack) {
  service.restock("pen", 10);
  EXPECT_EQ(service.deduct("pen", 1, "before"), Deduction::deducted);
  server.kill();
  EXPECT_THROW((void)service.deduct("pen", 1, "while down"), StoreUnavailable);
  EXPECT_THROW((void)service.level("pen"), StoreUnavailable);
  server.restart();
  EXPECT_EQ(service.deduct("pen", 1, "before"), Deduction::duplicate);
  EXPECT_EQ(service.deduct("pen", 1, "while down"), Deduction::deducted);
  EXPECT_EQ(service.level("pen"), 8);
}

TEST_P(DatabaseFaults, ManyDeadSessionsAreNoReasonToFail) {
  constexpr int sessions = 8;
  for (int article = 0; article < sessions; ++article) service.restock(std::to_string(article), 10);
  Poco::Data::Session blocker = shop.session();
  blocker.begin();
  blocker << "UPDATE lockkeeper_stock SET version = version + 1", now;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < sessions; ++thread) {
    threads.emplace_back(
        [&, thread] { (void)service.deduct(std::to_string(thread), 1, std::to_string(thread)); });
  }
  // The shop's services may have idle sessions besides.
  EXPECT_TRUE(waitUntil([&] { return server.sessions() >= sessions; })) << "they queue for the rows";
  blocker.rollback();
  for (auto& thread : threads) thread.join();
  EXPECT_GE(server.killSessions(), sessions);
  EXPECT_EQ(service.deduct("0", 1, "after"), Deduction::deducted);
}

TEST_P(DatabaseFaults, AFrozenServerHoldsNoCallForEver) {
  service.restock("pen", 10);
  server.pause();
  EXPECT_THROW((void)service.deduct("pen", 1, "frozen"), StoreUnavailable);
  EXPECT_THROW((void)service.deduct("pen", 1, "frozen"), StoreUnavailable) << "now without a connection";
  server.resume();
  EXPECT_TRUE(waitUntil([&] {
    try {
      return service.deduct("pen", 1, "frozen") == Deduction::deducted;
    } catch (const StoreUnavailable&) {
      return false;  // It works off what came in meanwhile.
    }
  }));
  EXPECT_EQ(shop.level("pen"), 9);
}

TEST_P(DatabaseFaults, ARowThatStaysLockedIsAConflict) {
  service.restock("pen", 10);
  Poco::Data::Session blocker = shop.session();
  blocker.begin();
  blocker << "UPDATE lockkeeper_stock SET version = version + 1 WHERE sku = 'pen'", now;
  EXPECT_EQ(service.deduct("pen", 1, "order"), Deduction::conflict);
  EXPECT_THROW(service.restock("pen", 1), StoreUnavailable);
  blocker.rollback();
  EXPECT_EQ(service.deduct("pen", 1, "order"), Deduction::deducted);
}

// MySQL does not notice that a client has left while its statement waits for a table.
TEST_P(MysqlFaults, ATableThatStaysLockedFillsNoServerAndSellsToNobody) {
  service.restock("pen", 10);
  // Not by Poco: MySQL does not prepare it.
  mysql::ServerRows rows(StoreUri::parse(shop.uri()), {.operationTimeout = std::chrono::minutes{1}});
  auto other = rows.begin();
  other.execute("LOCK TABLES lockkeeper_stock READ", {});
  const int before = server.sessions();
  for (int attempt = 0; attempt < 3; ++attempt)
    EXPECT_EQ(service.deduct("pen", 1, "order " + std::to_string(attempt)), Deduction::conflict);
  EXPECT_LE(server.sessions(), before);
  other.execute("UNLOCK TABLES", {});
  EXPECT_EQ(shop.level("pen"), 10);
  EXPECT_EQ(service.deduct("pen", 1, "order"), Deduction::deducted);
}

TEST_P(DatabaseFaults, ATransactionForWhichNoTimeIsLeftCostsNoSession) {
  service.restock("pen", 1);
  inventory::Database database(shop.uri(), veryImpatient);
  const auto session = [&] {
    inventory::Transaction transaction = database.begin();
    const bool isPostgres = GetParam() == Backend::postgres;
    return transaction.select(isPostgres ? "SELECT pg_backend_pid()" : "SELECT CONNECTION_ID()", {})
        .value()
        .front();
  };
  const mysql::SqlValue before = session();
  const Instant passed = veryImpatient.environment.clock->now();
  EXPECT_THROW((void)database.begin(inventory::Access::write, passed).select("SELECT 1", {}),
               StoreUnavailable);
  EXPECT_EQ(session(), before);
}

TEST_P(DatabaseFaults, CallersWaitForASessionOnlyForSoLong) {
  inventory::Database database(shop.uri(), {.operationTimeout = std::chrono::seconds{1}, .sessions = 1});
  {
    const inventory::Transaction holder = database.begin();
    try {
      (void)database.begin();
      ADD_FAILURE() << "there were two sessions";
    } catch (const StoreUnavailable& error) {
      EXPECT_NE(std::string(error.what()).find("all 1 sessions stayed in use"), std::string::npos)
          << error.what();
    }
  }
  EXPECT_NO_THROW((void)database.begin()) << "the holder has given his back";
}

INSTANTIATE_TEST_SUITE_P(All, HeldCommits, ::testing::Values(Backend::mariadb),
                         [](const auto& each) { return nameOf(each.param); });
INSTANTIATE_TEST_SUITE_P(All, DatabaseFaults, ::testing::ValuesIn(allServers),
                         [](const auto& each) { return nameOf(each.param); });
INSTANTIATE_TEST_SUITE_P(All, MysqlFaults, ::testing::ValuesIn(mysqlServers),
                         [](const auto& each) { return nameOf(each.param); });

TEST(SqliteFaults, ADatabaseThatStaysLockedIsAConflict) {
  Shop shop(Backend::sqlite);
  StockService service = shop.service(Way::conditionalUpdate, veryImpatient);
  service.restock("pen", 10);
  Poco::Data::Session blocker = shop.session();
  blocker << "BEGIN IMMEDIATE", now;
  EXPECT_EQ(service.deduct("pen", 1, "order"), Deduction::conflict);
  EXPECT_EQ(service.level("pen"), 10) << "reading goes on";
  blocker.rollback();
  EXPECT_EQ(service.deduct("pen", 1, "order"), Deduction::deducted);
}

}  // namespace
}  // namespace lockkeeper::test
