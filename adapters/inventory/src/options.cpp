#include "options.h"

#include <stdexcept>
#include <string>

#include "lockkeeper/driver/key.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/check_range.h"
#include "lockkeeper/inventory/stock_service.h"

namespace lockkeeper::inventory {
namespace {

constexpr std::size_t maxNameBytes = 64;
constexpr std::int64_t maxQuantity = 1'000'000;
constexpr std::size_t maxSessions = 256;
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
}

void checkSku(std::string_view sku) {
  checkName("sku", sku);
  checkKey(lockKey(sku));  // In every way, so that an article does not depend on how it is sold.
}

void checkOrderId(std::string_view orderId) { checkName("orderId", orderId); }

std::string lockKey(std::string_view sku) { return "stock:" + std::string(sku); }

void checkQuantity(std::int64_t quantity, std::int64_t least) {
  checkRange("quantity", quantity, least, maxQuantity);
}

}  // namespace lockkeeper::inventory
