#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace flash_sale {

/// What customers get to see.
struct Rush {
  int sold = 0;        ///< Orders that were answered with success. Each is for one piece.
  int soldOut = 0;     ///< … with "sold out".
  int busy = 0;        ///< Answers "busy, try again", however the order ended.
  int declined = 0;    ///< Payments that were not accepted.
  int unpaid = 0;      ///< Customers who reserved, and were never seen again.
  int unanswered = 0;  ///< Orders that ended otherwise, after all their retries.
  std::chrono::duration<double> took{0};
  std::vector<std::chrono::microseconds>
      waits;  ///< Of each order, from its first request to its last answer. Sorted.
};

/// How customers buy.
enum class Buying {
  order,    ///< At once.
  reserve,  ///< They reserve and pay. Of 20 payments one is declined, and of 20 customers one never pays.
};

struct RushPlan {
  std::vector<std::uint16_t> ports{};
  Buying buying = Buying::order;
  std::string sku{};
  std::string orderPrefix{};
  int orders = 0;
  int customers = 0;
};

/// Sends the orders over real HTTP connections, one for each customer, and waits until all are answered.
/// Counts `answered` up meanwhile.
Rush rush(const RushPlan& plan, std::atomic<int>& answered);

/// GET /stock/{sku}; throws when there is no such answer.
std::int64_t levelOverHttp(std::uint16_t port, const std::string& sku);

}  // namespace flash_sale
