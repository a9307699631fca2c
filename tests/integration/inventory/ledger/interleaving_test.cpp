// Two callers at every point at which one may overtake the other: the first is stopped before each of its
// requests to the server in turn, and the second goes on meanwhile, to its end or until it waits for the
// first one's rows. Whatever comes of it must be what one of them after the other would have done.

#include <gmock/gmock.h>

#include <Poco/Data/Statement.h>

#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "fault_proxy.h"
#include "shop.h"
#include "stock_model.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using inventory::CartLine;
using inventory::CartRule;
using inventory::ReservationState;
using inventory::StockOptions;
using inventory::StockService;
using inventory::Way;
using Poco::Data::Keywords::now;

/// What two callers meet over, named apart for each case.
struct Case {
  std::string pen;
  std::string ink;
  std::string sold;  ///< An order of one pen.
  std::string cart;  ///< A reservation of one pen and one ink.
};

/// What one of them does, and what the model does for it. The answer is text.
struct Call {
  std::string name;
  std::function<std::string(StockService&, const Case&, const std::string& id)> real;
  std::function<std::string(StockModel&, const Case&, const std::string& id)> model;
};

std::vector<CartLine> cartOf(const Case& at) { return {{at.pen, 2}, {at.ink, 1}}; }

/// `cart`: the reservation that confirm, cancel and extend mean; empty for that of the caller's own id.
std::vector<Call> callsOn(const std::function<std::string(const Case&, const std::string&)>& cart) {
  const auto ending = [&](const std::string& name, ReservationState state, auto call) {
    return Call{name,
                [=](StockService& stock, const Case& at, const std::string& id) {
                  return toString((stock.*call)(cart(at, id)));
                },
                [=](StockModel& model, const Case& at, const std::string& id) {
                  return toString(model.end(cart(at, id), state));
                }};
  };
  return {{"order",
           [](StockService& stock, const Case& at, const std::string& id) {
             return toString(stock.deduct(at.pen, 2, id));
           },
           [](StockModel& model, const Case& at, const std::string& id) {
             return toString(model.deduct(at.pen, 2, id));
           }},
          {"reserve",
           [](StockService& stock, const Case& at, const std::string& id) {
             return toString(stock.reserve(cartOf(at), 1h, id).state);
           },
           [](StockModel& model, const Case& at, const std::string& id) {
             return toString(model.reserve(cartOf(at), 1h, id, CartRule::all));
           }},
          {"replace",
           [=](StockService& stock, const Case& at, const std::string& id) {
             return toString(stock.replace({{at.pen, 2}}, 1h, cart(at, id)).state);
           },
           [=](StockModel& model, const Case& at, const std::string& id) {
             return toString(model.replace({{at.pen, 2}}, 1h, cart(at, id), CartRule::all));
           }},
          ending("confirm", ReservationState::confirmed, &StockService::confirm),
          ending("cancel", ReservationState::cancelled, &StockService::cancel),
          {"extend",
           [=](StockService& stock, const Case& at, const std::string& id) {
             return toString(stock.extend(cart(at, id), 10h));
           },
           [=](StockModel& model, const Case& at, const std::string& id) {
             return toString(model.extend(cart(at, id), 10h));
           }},
          {"takeBack",
           [](StockService& stock, const Case& at, const std::string& id) {
             return toString(stock.takeBack(at.sold, at.pen, 1, id));
           },
           [](StockModel& model, const Case& at, const std::string& id) {
             return toString(model.takeBack(at.sold, at.pen, 1, id));
           }},
          {"restock",
           [](StockService& stock, const Case& at, const std::string& id) {
             return toString(stock.restock(at.pen, 1, id));
           },
           [](StockModel& model, const Case& at, const std::string& id) {
             return toString(model.restock(at.pen, 1, id));
           }},
          {"split",
           [](StockService& stock, const Case& at, const std::string&) {
             return stock.split(at.pen, 3) ? "split" : "unknown sku";
           },
           [](StockModel&, const Case&, const std::string&) { return "split"; }}};
}

/// What was answered, and what is left.
std::string outcome(const std::string& first, const std::string& second, std::int64_t pens,
                    std::int64_t ink) {
  return first + ", " + second + ", " + std::to_string(pens) + " pens, " + std::to_string(ink) + " ink";
}

class Interleaving : public ::testing::TestWithParam<Backend> {
 protected:
  static StockOptions options() { return {.operationTimeout = 20s, .rememberSoldOut = 0ms, .sessions = 1}; }

  /// Two pens and one ink are left besides; of what has expired one pen, so that an order wants more.
  StockModel stock(const Case& at) {
    StockModel model;
    for (const auto& [sku, quantity] : {std::pair{at.pen, expired ? 3 : 4}, std::pair{at.ink, 2}}) {
      service.restock(sku, quantity, sku);
      model.restock(sku, quantity, sku);
    }
    const std::vector<CartLine> cart{{at.pen, 1}, {at.ink, 1}};
    if (split) {
      EXPECT_TRUE((cases % 2 == 0 ? distant : service).split(at.pen, 2));
    }
    EXPECT_EQ(service.deduct(at.pen, 1, at.sold), model.deduct(at.pen, 1, at.sold));
    EXPECT_EQ(service.reserve(cart, 1h, at.cart).state, model.reserve(cart, 1h, at.cart, CartRule::all));
    if (!expired) return model;
    Poco::Data::Session session = shop.session();
    session << "UPDATE lockkeeper_reservations SET expires_at = 1 WHERE reservation_id = '" + at.cart + "'",
        now;
    model.expireAt(1h);
    return model;
  }

  /// False when the first has come to its end without having sent so many requests.
  bool meet(const Call& first, const Call& second, std::size_t requests, bool sameId) {
    const std::string number = std::to_string(++cases) + ":";
    const Case at{number + "pen", number + "ink", number + "sold", number + "cart"};
    const StockModel before = stock(at);
    const std::string idOfFirst = number + "x";
    const std::string idOfSecond = number + (sameId ? "x" : "y");
    proxy.set({.kind = ProxyFault::Kind::step, .requests = requests});
    auto one = std::async(std::launch::async, [&] { return first.real(distant, at, idOfFirst); });
    const auto done = [](const auto& each) { return each.wait_for(0s) == std::future_status::ready; };
    EXPECT_TRUE(waitUntil([&] { return proxy.fired() > 0 || done(one); }));
    const bool wasStopped = proxy.fired() > 0;
    auto other = std::async(std::launch::async, [&] { return second.real(service, at, idOfSecond); });
    EXPECT_TRUE(waitUntil([&] { return done(other) || shop.rowLockWaits() > 0; }));
    stopped += wasStopped ? 1 : 0;
    overtaken += wasStopped && done(other) ? 1 : 0;
    proxy.passThrough();
    const std::string answerOfFirst = one.get();
    const std::string answerOfSecond = other.get();
    if (expired) (void)service.sweepExpired();
    const std::string real =
        outcome(answerOfFirst, answerOfSecond, service.level(at.pen).value(), service.level(at.ink).value());

    StockModel forward = before;
    StockModel backward = before;
    const std::string a = first.model(forward, at, idOfFirst);
    const std::string b = second.model(forward, at, idOfSecond);
    const std::string d = second.model(backward, at, idOfSecond);
    const std::string c = first.model(backward, at, idOfFirst);
    const std::string oneFirst = outcome(a, b, forward.level(at.pen), forward.level(at.ink));
    const std::string otherFirst = outcome(c, d, backward.level(at.pen), backward.level(at.ink));
    EXPECT_THAT(real, ::testing::AnyOf(oneFirst, otherFirst));
    StockModel& happened = real == oneFirst ? forward : backward;
    EXPECT_EQ(first.real(service, at, idOfFirst), first.model(happened, at, idOfFirst)) << "again";
    EXPECT_EQ(second.real(distant, at, idOfSecond), second.model(happened, at, idOfSecond)) << "again";
    return wasStopped;
  }

  void meetEverywhere(const std::vector<Call>& calls, bool sameId) {
    for (const Call& first : calls) {
      for (const Call& second : calls) {
        for (std::size_t requests = 0; !HasFailure(); ++requests) {
          SCOPED_TRACE(first.name + " stopped before request " + std::to_string(requests + 1) + ", " +
                       second.name + " meanwhile");
          if (!meet(first, second, requests, sameId)) {
            EXPECT_GT(requests, 0U) << "it was never stopped";
            break;
          }
        }
      }
    }
    EXPECT_THAT(service.checkLedger(), ::testing::IsEmpty());
    EXPECT_GT(stopped, 2 * calls.size() * calls.size());
    EXPECT_GT(overtaken, calls.size() * calls.size()) << "the second always waited";
    RecordProperty("stopped", std::to_string(stopped));
    RecordProperty("overtaken", std::to_string(overtaken));
  }

  Shop shop{GetParam()};
  FaultProxy proxy{serverOf(GetParam()).port()};
  StockService service = shop.service(Way::conditionalUpdate, options());
  StockService distant{shop.uriBy(proxy.port()), shop.manager(), Way::conditionalUpdate, options()};
  bool expired = false;
  bool split = false;  // beforehand, by one of them
  std::size_t cases = 0;
  std::size_t stopped = 0;
  std::size_t overtaken = 0;
};

TEST_P(Interleaving, OfTwoCallersIsOneAfterTheOther) {
  (void)distant.restock("connects", 1, "connects");
  meetEverywhere(callsOn([](const Case& at, const std::string&) { return at.cart; }), false);
}

TEST_P(Interleaving, OfTwoCallersWithOneIdIsOneAfterTheOther) {
  (void)distant.restock("connects", 1, "connects");
  meetEverywhere(callsOn([](const Case&, const std::string& id) { return id; }), true);
}

TEST_P(Interleaving, OfTwoCallersOnAnArticleInBucketsIsOneAfterTheOther) {
  (void)distant.restock("connects", 1, "connects");
  split = true;
  meetEverywhere(callsOn([](const Case& at, const std::string&) { return at.cart; }), false);
}

// Returns and restocks do not look at what has expired.
TEST_P(Interleaving, OfTwoCallersOverWhatHasExpiredIsOneAfterTheOther) {
  (void)distant.restock("connects", 1, "connects");
  expired = true;
  std::vector<Call> calls = callsOn([](const Case& at, const std::string&) { return at.cart; });
  std::erase_if(calls, [](const Call& each) { return each.name == "takeBack" || each.name == "restock"; });
  meetEverywhere(calls, false);
}

INSTANTIATE_TEST_SUITE_P(All, Interleaving, ::testing::ValuesIn(allServers),
                         [](const auto& each) { return nameOf(each.param); });

}  // namespace
}  // namespace lockkeeper::test
