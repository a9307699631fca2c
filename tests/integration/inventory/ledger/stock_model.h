#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lockkeeper/inventory/stock_service.h"

namespace lockkeeper::test {

/// What StockService promises, in the simplest words. Its time is what its callers say, and reservations that
/// have expired are put back at once.
class StockModel {
 public:
  inventory::Restock restock(const std::string& sku, std::int64_t quantity, const std::string& id) {
    if (!restocks_.insert(id).second) return inventory::Restock::duplicate;
    stocked_[sku] += quantity;
    free_[sku] += quantity;
    return inventory::Restock::restocked;
  }

  inventory::Deduction deduct(const std::string& sku, std::int64_t quantity, const std::string& id) {
    if (sold_.contains(id)) return inventory::Deduction::duplicate;
    if (free_[sku] < quantity) return inventory::Deduction::soldOut;
    free_[sku] -= quantity;
    sold_[id][sku] = quantity;
    return inventory::Deduction::deducted;
  }

  inventory::ReservationState reserve(std::vector<inventory::CartLine> cart, std::chrono::milliseconds ends,
                                      const std::string& id, inventory::CartRule rule) {
    std::ranges::sort(cart, {}, &inventory::CartLine::sku);
    if (reservations_.contains(id)) {
      const Held& held = reservations_[id];
      const bool differs = held.state == inventory::ReservationState::held && !areSame(held.wanted, cart);
      return differs ? inventory::ReservationState::differs : held.state;
    }
    return hold(std::move(cart), ends, id, rule);
  }

  inventory::ReservationState replace(std::vector<inventory::CartLine> cart, std::chrono::milliseconds ends,
                                      const std::string& id, inventory::CartRule rule) {
    if (!reservations_.contains(id)) return inventory::ReservationState::unknownId;
    const Held former = reservations_[id];
    if (former.state != inventory::ReservationState::held) return former.state;
    std::ranges::sort(cart, {}, &inventory::CartLine::sku);
    for (const inventory::CartLine& each : former.cart) free_[each.sku] += each.quantity;
    const inventory::ReservationState result = hold(std::move(cart), ends, id, rule);
    if (result == inventory::ReservationState::held) return result;
    for (const inventory::CartLine& each : former.cart) free_[each.sku] -= each.quantity;
    return result;
  }

  inventory::ReservationState end(const std::string& id, inventory::ReservationState state) {
    if (!reservations_.contains(id)) return inventory::ReservationState::unknownId;
    Held& held = reservations_[id];
    if (held.state != inventory::ReservationState::held) return held.state;
    held.state = state;
    for (const inventory::CartLine& each : held.cart) {
      if (state == inventory::ReservationState::confirmed) {
        soldByCart_[id][each.sku] = each.quantity;
      } else {
        free_[each.sku] += each.quantity;
      }
    }
    return state;
  }

  inventory::ReservationState extend(const std::string& id, std::chrono::milliseconds ends) {
    if (!reservations_.contains(id)) return inventory::ReservationState::unknownId;
    Held& held = reservations_[id];
    if (held.state == inventory::ReservationState::held) held.ends = std::max(held.ends, ends);
    return held.state;
  }

  inventory::Return takeBack(const std::string& orderId, const std::string& sku, std::int64_t quantity,
                             const std::string& id) {
    if (returns_.contains(id)) return inventory::Return::duplicate;
    const std::int64_t sold = quantityIn(sold_, orderId, sku) + quantityIn(soldByCart_, orderId, sku);
    if (sold == 0) return inventory::Return::unknownOrder;
    if (returned_[orderId + "/" + sku] + quantity > sold) return inventory::Return::tooMany;
    returned_[orderId + "/" + sku] += quantity;
    returns_.insert(id);
    free_[sku] += quantity;
    return inventory::Return::returned;
  }

  void expireAt(std::chrono::milliseconds time) {
    for (auto& [id, held] : reservations_) {
      if (held.state == inventory::ReservationState::held && held.ends <= time)
        (void)end(id, inventory::ReservationState::expired);
    }
  }

  std::int64_t level(const std::string& sku) { return free_[sku]; }
  /// What all restocks have brought.
  std::int64_t stocked(const std::string& sku) { return stocked_[sku]; }

 private:
  struct Held {
    inventory::ReservationState state = inventory::ReservationState::held;
    std::vector<inventory::CartLine> cart{};
    std::chrono::milliseconds ends{};
    std::vector<inventory::CartLine> wanted{};
  };
  using Quantities = std::map<std::string, std::int64_t>;

  static bool areSame(const std::vector<inventory::CartLine>& one,
                      const std::vector<inventory::CartLine>& other) {
    return std::ranges::equal(one, other,
                              [](const inventory::CartLine& line, const inventory::CartLine& its) {
                                return line.sku == its.sku && line.quantity == its.quantity;
                              });
  }

  /// Nothing changes when it cannot be had.
  inventory::ReservationState hold(std::vector<inventory::CartLine> cart, std::chrono::milliseconds ends,
                                   const std::string& id, inventory::CartRule rule) {
    const std::vector<inventory::CartLine> wanted = cart;
    bool all = true;
    std::int64_t sum = 0;
    for (inventory::CartLine& each : cart) {
      all = all && free_[each.sku] >= each.quantity;
      each.quantity = std::min(each.quantity, free_[each.sku]);
      sum += each.quantity;
    }
    if (rule == inventory::CartRule::all ? !all : sum == 0) return inventory::ReservationState::soldOut;
    for (const inventory::CartLine& each : cart) free_[each.sku] -= each.quantity;
    reservations_[id] = {inventory::ReservationState::held, std::move(cart), ends, wanted};
    return inventory::ReservationState::held;
  }

  static std::int64_t quantityIn(const std::map<std::string, Quantities>& sold, const std::string& id,
                                 const std::string& sku) {
    const auto found = sold.find(id);
    return found == sold.end() || !found->second.contains(sku) ? 0 : found->second.at(sku);
  }

  Quantities stocked_{};
  Quantities free_{};
  std::map<std::string, Quantities> sold_{};
  std::map<std::string, Quantities> soldByCart_{};
  std::map<std::string, Held> reservations_{};
  std::set<std::string> restocks_{};
  std::set<std::string> returns_{};
  Quantities returned_{};
};

}  // namespace lockkeeper::test
