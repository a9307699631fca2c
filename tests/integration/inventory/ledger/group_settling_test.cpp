// Reservations of one article that are confirmed, cancelled and extended as one transaction: each call gets
// the answer that it would have got alone, whatever becomes of the connection.

#include "ledger/group_settling.h"

#include <gmock/gmock.h>

#include <Poco/Data/Statement.h>

#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "free_port.h"
#include "group_faults.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using inventory::Database;
using inventory::GroupSettling;
using inventory::PlacedSettlement;
using inventory::ReservationState;
using inventory::StockService;
using inventory::Way;
using Poco::Data::Keywords::now;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Calls in the order in which they came.
class Calls {
 public:
  Calls& confirm(const std::string& id) { return add(id, ReservationState::confirmed); }
  Calls& cancel(const std::string& id) { return add(id, ReservationState::cancelled); }
  Calls& extend(const std::string& id, std::chrono::milliseconds ttl) {
    return add(id, ReservationState::held, ttl);
  }

  Calls& settle(Database& database) {
    std::vector<PlacedSettlement*> calls;
    for (PlacedSettlement& each : calls_) calls.push_back(&each);
    GroupSettling(database, "who", calls, Instant::max()).run();
    return *this;
  }

  /// "held", … or the name of the error.
  Answers answers() const {
    Answers answers;
    for (const PlacedSettlement& each : calls_) {
      answers.push_back(each.failure ? nameOf(each.failure) : toString(each.result.state));
    }
    return answers;
  }

 private:
  Calls& add(const std::string& id, ReservationState target, std::chrono::milliseconds ttl = {}) {
    calls_.push_back({.id = id, .skus = {"pen"}, .target = target, .ttl = ttl});
    return *this;
  }

  std::deque<PlacedSettlement> calls_;
};

class GroupSettlingTest : public ::testing::TestWithParam<Backend> {
 protected:
  void hold(const std::string& id, std::chrono::milliseconds ttl = 10min) {
    ASSERT_EQ(service.reserve({{"pen", 2}}, ttl, id).state, ReservationState::held);
  }

  Shop shop{GetParam()};
  StockService service = shop.service(Way::conditionalUpdate, impatient);
  Database database{shop.uri(), impatient};
};

TEST_P(GroupSettlingTest, AnswersOneCallAfterTheOther) {
  service.restock("pen", 20);
  for (const char* id : {"a", "b", "c", "d"}) hold(id);
  hold("late", 1ms);
  std::this_thread::sleep_for(20ms);  // by the clock of the server
  EXPECT_THAT(Calls()
                  .confirm("a")
                  .cancel("b")
                  .cancel("a")
                  .confirm("b")
                  .confirm("late")
                  .extend("c", 1h)
                  .extend("late", 1h)
                  .confirm("none")
                  .cancel("d")
                  .confirm("a")
                  .settle(database)
                  .answers(),
              ElementsAre("confirmed", "cancelled", "confirmed", "cancelled", "expired", "held", "expired",
                          "unknown id", "cancelled", "confirmed"));
  EXPECT_EQ(shop.level("pen"), 20 - 2 - 2) << "sold and held";
  EXPECT_EQ(service.sweepExpired(), 0U);
  std::vector<std::string> entries;
  for (const auto& each : service.ledger("pen")) {
    if (each.reason == "cancel" || each.reason == "confirm" || each.reason == "expire") {
      entries.push_back(each.reason + " " + each.id + " " + std::to_string(each.amount) + " " + each.who);
    }
  }
  EXPECT_THAT(entries, ::testing::UnorderedElementsAre("confirm a 0 who", "cancel b 2 who", "cancel d 2 who",
                                                       "expire late 2 who"));
  EXPECT_THAT(service.checkLedger(), IsEmpty());
}

TEST_P(GroupSettlingTest, AReservationWithAnUnknownStateFailsItsOwnCallersAlone) {
  service.restock("pen", 20);
  for (const char* id : {"a", "new", "b"}) hold(id);
  shop.session() << "UPDATE lockkeeper_reservations SET state = 'packed' WHERE reservation_id = 'new'", now;
  const std::string why =
      "the reservation 'new' has the state 'packed' in lockkeeper_reservations: it must be held, confirmed, "
      "cancelled or expired";
  EXPECT_THAT(Calls()
                  .confirm("a")
                  .confirm("new")
                  .cancel("new")
                  .extend("new", 1h)
                  .cancel("b")
                  .settle(database)
                  .answers(),
              ElementsAre("confirmed", why, why, why, "cancelled"));
  EXPECT_EQ(shop.level("pen"), 20 - 2 - 2);
}

TEST_P(GroupSettlingTest, TellsTheLevelThatEachLeft) {
  service.restock("pen", 6);
  for (const char* id : {"a", "b", "c"}) hold(id);
  Calls().cancel("a").cancel("b").cancel("c").settle(database);
  std::vector<std::string> entries;
  for (const auto& each : service.ledger("pen")) {
    if (each.reason == "cancel") entries.push_back(each.id + " " + std::to_string(each.levelAfter.value()));
  }
  EXPECT_THAT(entries, ::testing::UnorderedElementsAre("a 2", "b 4", "c 6"));
}

// As callers do it, each id from two of them.
TEST_P(GroupSettlingTest, ManyCallersEndEachOnce) {
  constexpr int callers = 12;
  constexpr int cartsOfTwo = 15;
  service.restock("pen", 1'000);
  StockService together = shop.service(Way::conditionalUpdate, {.operationTimeout = 20s});
  {
    std::vector<std::jthread> threads;
    for (int caller = 0; caller < callers; ++caller) {
      threads.emplace_back([&, caller] {
        for (int number = 0; number < cartsOfTwo; ++number) {
          const std::string id = std::to_string(caller / 2) + "-" + std::to_string(number);
          (void)together.reserve({{"pen", 2}}, 10min, id);
          if (caller % 2 == 0) {
            EXPECT_NE(together.confirm(id), ReservationState::held);
          } else {
            EXPECT_NE(together.cancel(id), ReservationState::held);
          }
        }
      });
    }
  }
  EXPECT_EQ(shop.level("pen") + shop.reserved("pen"), 1'000);
  EXPECT_THAT(service.checkLedger(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(All, GroupSettlingTest, ::testing::ValuesIn(allBackends),
                         [](const auto& each) { return nameOf(each.param); });

class GroupSettlingFaults : public GroupFaults {
 protected:
  GroupSettlingFaults() { service.restock("pen", 1'000'000); }

  Calls held(const std::string& name) {
    for (const char* id : {"a", "b"}) (void)service.reserve({{"pen", 1}}, 10min, name + id);
    return Calls().confirm(name + "a").cancel(name + "b");
  }
};

TEST_P(GroupSettlingFaults, EveryCutReplyEndsInTheTruth) {
  endInTheTruth(
      [&](const std::string& name, Database& database) { return held(name).settle(database).answers(); }, 7,
      [&](const std::string& name) {
        return service.extend(name + "a", 1ms) == ReservationState::confirmed &&
               service.extend(name + "b", 1ms) == ReservationState::cancelled;
      });
  EXPECT_EQ(shop.level("pen") + shop.reserved("pen"), 1'000'000);
  EXPECT_THAT(service.checkLedger(), IsEmpty());
}

TEST_P(GroupSettlingFaults, AConnectionThatIsLostBeforeCommitEndsNothing) {
  held("connect").settle(distant);
  Calls calls = held("cart");
  proxy.leadTo(freePort());
  proxy.cutReplies(0, Ending::rst);
  EXPECT_THAT(calls.settle(distant).answers(), ElementsAre("unavailable", "unavailable"));
  EXPECT_EQ(proxy.fired(), 1U);
  EXPECT_EQ(service.extend("carta", 1ms), ReservationState::held);
}

TEST_P(GroupSettlingFaults, AnAnswerThatIsLostAndCannotBeAskedForIsADoubt) {
  held("connect").settle(distant);
  Calls measured = held("measure");
  proxy.passThrough();
  measured.settle(distant);
  const std::size_t allButTheEnd = proxy.replyBytes() - 1;
  Calls calls = held("carts-s");
  proxy.leadTo(freePort());
  proxy.cutReplies(allButTheEnd, Ending::rst);
  EXPECT_THAT(calls.settle(distant).answers(), ElementsAre("unknown", "unknown"));
  EXPECT_EQ(service.extend("carts-sa", 1ms), ReservationState::confirmed) << "the server had committed";
}

INSTANTIATE_TEST_SUITE_P(All, GroupSettlingFaults, ::testing::ValuesIn(allServers),
                         [](const auto& each) { return nameOf(each.param); });

}  // namespace
}  // namespace lockkeeper::test
