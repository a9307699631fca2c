#pragma once

#include <cstdint>
#include <istream>
#include <stdexcept>
#include <string>

namespace flash_sale {

/// The body of POST /orders.
struct OrderRequest {
  std::string sku;
  std::int64_t quantity;
  std::string orderId;

  /// Reads {"sku":…,"quantity":…,"orderId":…}, 16 kB at most. Throws BadRequest.
  static OrderRequest read(std::istream& body);
};

/// The body of POST /payments: how the payment for a reservation went.
struct PaymentRequest {
  std::string orderId;
  bool accepted;

  /// Reads {"orderId":…,"accepted":…}, 16 kB at most. Throws BadRequest.
  static PaymentRequest read(std::istream& body);
};

/// What is wrong with a request, and in which field.
class BadRequest : public std::runtime_error {
 public:
  BadRequest(std::string field, const std::string& message)
      : std::runtime_error(message), field_(std::move(field)) {}
  /// "body" when it is not about one field.
  const std::string& field() const { return field_; }

 private:
  std::string field_;
};

}  // namespace flash_sale
