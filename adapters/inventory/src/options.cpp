#include "options.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "lockkeeper/base/key.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/check_range.h"
#include "lockkeeper/inventory/stock_service.h"

namespace lockkeeper::inventory {
namespace {

constexpr std::size_t maxNameBytes = 64;
constexpr std::int64_t maxQuantity = 1'000'000;
constexpr std::size_t maxSessions = 256;
constexpr std::size_t maxCartLines = 100;
constexpr std::chrono::milliseconds longestReservation{std::chrono::days{30}};
constexpr std::size_t maxLedgerEntries = 100'000;
constexpr std::size_t maxBuckets = 64;
constexpr std::chrono::milliseconds mostRemembered{std::chrono::minutes{1}};
constexpr std::chrono::seconds leastOperationTimeout{1};
constexpr std::chrono::seconds mostOperationTimeout{std::chrono::hours{1}};

void checkName(std::string_view field, std::string_view value) {
  if (value.empty() || value.size() > maxNameBytes) {
    throw std::invalid_argument(std::string(field) + " is " + quoted(value) + " (" +
                                std::to_string(value.size()) + " bytes): 1 to 64 bytes are allowed");
  }
}

}  // namespace

const char* toString(Way way) noexcept {
  switch (way) {
    case Way::fencedRow:
      return "fenced row";
    case Way::conditionalUpdate:
      return "conditional update";
    case Way::optimistic:
      return "optimistic";
    case Way::lockedOptimistic:
      return "lock + optimistic";
  }
  return "unknown";
}

const char* toString(Deduction deduction) noexcept {
  switch (deduction) {
    case Deduction::deducted:
      return "deducted";
    case Deduction::soldOut:
      return "sold out";
    case Deduction::busy:
      return "busy";
    case Deduction::duplicate:
      return "duplicate";
    case Deduction::conflict:
      return "conflict";
    case Deduction::unknownSku:
      return "unknown sku";
  }
  return "unknown";
}

const char* toString(Restock restock) noexcept {
  switch (restock) {
    case Restock::restocked:
      return "restocked";
    case Restock::duplicate:
      return "duplicate";
  }
  return "unknown";
}

const char* toString(Return result) noexcept {
  switch (result) {
    case Return::returned:
      return "returned";
    case Return::duplicate:
      return "duplicate";
    case Return::unknownOrder:
      return "unknown order";
    case Return::tooMany:
      return "too many";
  }
  return "unknown";
}

const char* toString(ReservationState state) noexcept {
  switch (state) {
    case ReservationState::held:
      return "held";
    case ReservationState::confirmed:
      return "confirmed";
    case ReservationState::cancelled:
      return "cancelled";
    case ReservationState::expired:
      return "expired";
    case ReservationState::soldOut:
      return "sold out";
    case ReservationState::unknownSku:
      return "unknown sku";
    case ReservationState::unknownId:
      return "unknown id";
    case ReservationState::differs:
      return "differs";
  }
  return "unknown";
}

void checkOptions(const StockOptions& options) {
  if (options.operationTimeout < leastOperationTimeout || options.operationTimeout > mostOperationTimeout) {
    throw std::invalid_argument("operationTimeout is " + formatDuration(options.operationTimeout) +
                                ": 1s to 1h are allowed");
  }
  if (options.rememberSoldOut.count() < 0 || options.rememberSoldOut > mostRemembered) {
    throw std::invalid_argument("rememberSoldOut is " + std::to_string(options.rememberSoldOut.count()) +
                                "ms: 0ms to 1m are allowed");
  }
  checkRange("sessions", options.sessions, 1, maxSessions);
  if (options.who.size() > maxNameBytes) {
    throw std::invalid_argument("who is " + quoted(options.who) + " (" + std::to_string(options.who.size()) +
                                " bytes): 0 to 64 bytes are allowed");
  }
}

void checkSku(std::string_view sku) {
  checkName("sku", sku);
  checkKey(lockKey(sku));  // In every way, so that an article does not depend on how it is sold.
}

void checkId(std::string_view field, std::string_view id) { checkName(field, id); }

std::string lockKey(std::string_view sku) { return "stock:" + std::string(sku); }

void checkQuantity(std::int64_t quantity, std::int64_t least) {
  checkRange("quantity", quantity, least, maxQuantity);
}

void checkLedgerLength(std::size_t most) { checkRange("most", most, 1, maxLedgerEntries); }

void checkBuckets(std::size_t buckets) { checkRange("buckets", buckets, 1, maxBuckets); }

void checkTtl(std::chrono::milliseconds ttl) {
  checkDuration("ttl", ttl, std::chrono::milliseconds{1}, longestReservation);
}

std::vector<CartLine> checkedCart(std::vector<CartLine> cart) {
  checkRange("the number of articles in the cart", cart.size(), 1, maxCartLines);
  for (const CartLine& each : cart) {
    checkSku(each.sku);
    checkQuantity(each.quantity, 1);
  }
  std::ranges::sort(cart, {}, &CartLine::sku);
  const auto twice = std::ranges::adjacent_find(cart, {}, &CartLine::sku);
  if (twice != cart.end()) {
    throw std::invalid_argument("the cart names the sku " + quoted(twice->sku) + " twice: once is allowed");
  }
  return cart;
}

}  // namespace lockkeeper::inventory
