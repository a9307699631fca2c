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
  int unanswered = 0;  ///< Orders that ended otherwise, after all their retries.
  std::chrono::duration<double> took{0};
  std::vector<std::chrono::microseconds>
      waits;  ///< Of each order, from its first request to its last answer. Sorted.
};

struct RushPlan {
  std::uint16_t port = 0;
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
