#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "lockkeeper/inventory/export.h"

namespace lockkeeper::inventory {

/// An article of a cart, and its quantity.
struct CartLine {
  std::string sku;
  std::int64_t quantity = 0;
};

/// The state of a reservation.
enum class ReservationState {
  held,        ///< Its goods are taken from stock until it expires.
  confirmed,   ///< Its goods are sold.
  cancelled,   ///< cancel() has returned its goods to stock.
  expired,     ///< It was not confirmed in time: its goods return to stock when they are needed.
  soldOut,     ///< No reservation was made: there was not enough in stock.
  unknownSku,  ///< No reservation was made: an article does not exist.
  unknownId,   ///< There is no reservation with this id.
  differs,     ///< A reservation of another cart is held under this id: reserve() has changed nothing.
};

/// "held", "confirmed", "cancelled", "expired", "sold out", "unknown sku", "unknown id" or "differs".
LOCKKEEPER_INVENTORY_EXPORT const char* toString(ReservationState state) noexcept;

/// The result of reserve() and replace().
struct Reservation {
  ReservationState state = ReservationState::soldOut;
  /// What the reservation holds or held, ordered by sku. For soldOut and unknownSku: the articles that are
  /// the cause, with the quantity that is available of each. For replace(), this includes what the
  /// reservation holds.
  std::vector<CartLine> lines{};
};

/// Whether a reservation may hold less than the cart.
enum class CartRule {
  all,   ///< The whole cart or nothing.
  part,  ///< As much as there is of each article, and at least one piece in all.
};

}  // namespace lockkeeper::inventory
