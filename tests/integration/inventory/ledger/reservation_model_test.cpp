// Random orders, carts, confirmations, cancellations, returns and expiries, beside a reference in memory.

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "lockkeeper/testing/fake_clock.h"
#include "shop.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using inventory::CartLine;
using inventory::CartRule;
using inventory::Deduction;
using inventory::Reservation;
using inventory::ReservationState;
using inventory::Restock;
using inventory::Return;
using inventory::StockService;
using inventory::Way;
using std::chrono::milliseconds;

constexpr int runs = 500;
constexpr int stepsOfRun = 25;
constexpr std::array<const char*, 3> articles{"a", "b", "c"};

/// What the service promises, in the simplest words.
class Model {
 public:
  void restock(const std::string& sku, std::int64_t quantity) { free_[sku] += quantity; }

  Deduction deduct(const std::string& sku, std::int64_t quantity, const std::string& id) {
    if (sold_.contains(id)) return Deduction::duplicate;
    if (free_[sku] < quantity) return Deduction::soldOut;
    free_[sku] -= quantity;
    sold_[id][sku] = quantity;
    return Deduction::deducted;
  }

  ReservationState reserve(std::vector<CartLine> cart, milliseconds ends, const std::string& id,
                           CartRule rule) {
    if (reservations_.contains(id)) return reservations_[id].state;
    bool all = true;
    std::int64_t sum = 0;
    for (CartLine& each : cart) {
      all = all && free_[each.sku] >= each.quantity;
      each.quantity = std::min(each.quantity, free_[each.sku]);
      sum += each.quantity;
    }
    if (rule == CartRule::all ? !all : sum == 0) return ReservationState::soldOut;
    for (const CartLine& each : cart) free_[each.sku] -= each.quantity;
    reservations_[id] = {ReservationState::held, std::move(cart), ends};
    return ReservationState::held;
  }

  ReservationState end(const std::string& id, ReservationState state) {
    if (!reservations_.contains(id)) return ReservationState::unknownId;
    Held& held = reservations_[id];
    if (held.state != ReservationState::held) return held.state;
    held.state = state;
    for (const CartLine& each : held.cart) {
      if (state == ReservationState::confirmed) {
        soldByCart_[id][each.sku] = each.quantity;
      } else {
        free_[each.sku] += each.quantity;
      }
    }
    return state;
  }

  ReservationState extend(const std::string& id, milliseconds ends) {
    if (!reservations_.contains(id)) return ReservationState::unknownId;
    Held& held = reservations_[id];
    if (held.state == ReservationState::held) held.ends = std::max(held.ends, ends);
    return held.state;
  }

  Return takeBack(const std::string& orderId, const std::string& sku, std::int64_t quantity,
                  const std::string& id) {
    if (returns_.contains(id)) return Return::duplicate;
    const std::int64_t sold = quantityIn(sold_, orderId, sku) + quantityIn(soldByCart_, orderId, sku);
    if (sold == 0) return Return::unknownOrder;
    if (returned_[orderId + "/" + sku] + quantity > sold) return Return::tooMany;
    returned_[orderId + "/" + sku] += quantity;
    returns_.insert(id);
    free_[sku] += quantity;
    return Return::returned;
  }

  void expireAt(milliseconds time) {
    for (auto& [id, held] : reservations_) {
      if (held.state == ReservationState::held && held.ends <= time) (void)end(id, ReservationState::expired);
    }
  }

  std::int64_t level(const std::string& sku) { return free_[sku]; }

 private:
  struct Held {
    ReservationState state = ReservationState::held;
    std::vector<CartLine> cart{};
    milliseconds ends{};
  };
  using Quantities = std::map<std::string, std::int64_t>;

  static std::int64_t quantityIn(const std::map<std::string, Quantities>& sold, const std::string& id,
                                 const std::string& sku) {
    const auto found = sold.find(id);
    return found == sold.end() || !found->second.contains(sku) ? 0 : found->second.at(sku);
  }

  Quantities free_{};
  std::map<std::string, Quantities> sold_{};
  std::map<std::string, Quantities> soldByCart_{};
  std::map<std::string, Held> reservations_{};
  std::set<std::string> returns_{};
  Quantities returned_{};
};

class ReservationModel : public ::testing::Test {
 protected:
  std::string sku() { return prefix + articles[static_cast<std::size_t>(upTo(2))]; }
  std::string id() { return prefix + std::to_string(upTo(7)); }
  milliseconds wall() const { return clock->wallNow().time_since_epoch(); }
  std::int64_t upTo(std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(0, most)(random);
  }

  std::vector<CartLine> cart() {
    std::vector<CartLine> cart;
    for (const char* each : articles) {
      if (upTo(1) == 0) cart.push_back({prefix + each, 1 + upTo(3)});
    }
    if (cart.empty()) cart.push_back({prefix + "a", 1});
    std::ranges::shuffle(cart, random);
    return cart;
  }

  void step(Model& model) {
    const std::string name = id();
    const milliseconds ttl(1 + upTo(50));
    switch (upTo(7)) {
      case 0: {
        const std::string article = sku();
        const std::int64_t quantity = 1 + upTo(3);
        EXPECT_EQ(service.deduct(article, quantity, name), model.deduct(article, quantity, name));
        break;
      }
      case 1:
      case 2: {
        const auto wanted = cart();
        const CartRule rule = upTo(2) == 0 ? CartRule::part : CartRule::all;
        EXPECT_EQ(service.reserve(wanted, ttl, name, rule).state,
                  model.reserve(wanted, wall() + ttl, name, rule));
        break;
      }
      case 3:
        EXPECT_EQ(service.confirm(name), model.end(name, ReservationState::confirmed));
        break;
      case 4:
        EXPECT_EQ(service.cancel(name), model.end(name, ReservationState::cancelled));
        break;
      case 5:
        EXPECT_EQ(service.extend(name, ttl), model.extend(name, wall() + ttl));
        break;
      case 6: {
        const std::string article = sku();
        const std::string returnId = id();
        EXPECT_EQ(service.takeBack(name, article, 1, returnId), model.takeBack(name, article, 1, returnId));
        break;
      }
      default:
        clock->advance(milliseconds(1 + upTo(30)));
        model.expireAt(wall());
        if (upTo(3) == 0) (void)service.sweepExpired();
    }
  }

  Shop shop{Backend::sqlite};
  std::shared_ptr<lockkeeper::testing::FakeClock> clock = std::make_shared<lockkeeper::testing::FakeClock>();
  // Sold out is not remembered: an id that was booked for another article would be sold out, and no
  // duplicate.
  StockService service =
      shop.service(Way::conditionalUpdate, {.rememberSoldOut = 0ms, .environment = {.clock = clock}});
  std::mt19937 random{7};
  std::string prefix;
};

TEST_F(ReservationModel, AgreesWithTheService) {
  for (int run = 0; run < runs && !HasFailure(); ++run) {
    SCOPED_TRACE("run " + std::to_string(run));
    prefix = std::to_string(run) + ":";
    Model model;
    for (const char* each : articles) {
      const std::int64_t quantity = upTo(8);
      service.restock(prefix + each, quantity, prefix + each);
      model.restock(prefix + each, quantity);
    }
    for (int number = 0; number < stepsOfRun && !HasFailure(); ++number) {
      SCOPED_TRACE("step " + std::to_string(number));
      step(model);
    }
    (void)service.sweepExpired();
    for (const char* each : articles) {
      EXPECT_EQ(service.level(prefix + each), model.level(prefix + each)) << each;
      EXPECT_EQ(shop.ledger(prefix + each), model.level(prefix + each)) << each;
    }
  }
  EXPECT_THAT(service.checkLedger(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace lockkeeper::test
