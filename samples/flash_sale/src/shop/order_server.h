#pragma once

#include <Poco/Net/HTTPServer.h>
#include <Poco/ThreadPool.h>

#include <chrono>
#include <cstdint>

#include "shop/shop.h"

namespace flash_sale {

/// So long a customer has to pay for what was reserved.
inline constexpr std::chrono::seconds heldFor{2};

/// Sells over HTTP while it lives:
///   POST /orders {"sku":"pen","quantity":1,"orderId":"o-1"}
///     201 booked, 200 was booked before, 409 sold out, 404 unknown article, 423 busy (try again after
///     Retry-After), 400 with a JSON error that names the field, 503 store or database not available (same
///     orderId is safe)
///   POST /reservations, the same body: takes the goods for `heldFor`
///     201 held; else as above
///   POST /payments {"orderId":"o-1","accepted":true}
///     200 {"result":"confirmed"}, or "cancelled" where the payment was not accepted; 410 the reservation has
///     expired; 404 there is none
///   GET /stock/{sku}
///     200 {"sku":…,"level":…}, 404
class OrderServer {
 public:
  /// Listens on 127.0.0.1; port 0 takes a free one. `shop` must outlive the server.
  OrderServer(Shop& shop, std::uint16_t port, int threads);
  ~OrderServer();

  std::uint16_t port() const { return server_.port(); }

 private:
  Poco::ThreadPool threads_;
  Poco::Net::HTTPServer server_;
};

}  // namespace flash_sale
