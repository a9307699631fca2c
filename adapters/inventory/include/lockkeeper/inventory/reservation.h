#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "lockkeeper/inventory/export.h"

namespace lockkeeper::inventory {

/// One article of a cart, and how many of it.
struct CartLine {
  std::string sku;
  std::int64_t quantity = 0;
};

/// What a reservation is.
enum class ReservationState {
  held,       ///< Its goods have left the stock, until it expires.
  confirmed,  ///< Its goods are sold.
  cancelled,  ///< Its goods went back by cancel().
  expired,  ///< Its time was over before it was confirmed: its goods went back, or go to whoever needs them.
  soldOut,  ///< There is none: too little was in stock.
  unknownSku,  ///< There is none: an article does not exist.
  unknownId,   ///< There is none of this id.
  differs,     ///< There is one that is held, but not of this cart: reserve() has changed nothing.
};

/// "held", "confirmed", "cancelled", "expired", "sold out", "unknown sku", "unknown id" or "differs".
LOCKKEEPER_INVENTORY_EXPORT const char* toString(ReservationState state) noexcept;

/// What reserve() and replace() answer.
struct Reservation {
  ReservationState state = ReservationState::soldOut;
  /// What it holds, or held, ordered by sku. Of soldOut and unknownSku: the articles that are to blame, and
  /// how many there are of each; for replace() with those that the reservation holds.
  std::vector<CartLine> lines{};
};

/// Whether a reservation may hold less than the cart.
enum class CartRule {
  all,   ///< All of it or nothing.
  part,  ///< Of each article what there is, one piece of one article at least.
};

}  // namespace lockkeeper::inventory
