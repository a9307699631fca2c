#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>

#include "lockkeeper/driver/clock.h"
#include "order/group_booking.h"

namespace lockkeeper::inventory {

/// Group commit: orders of one article that come while others of it are being booked gather, and one of their
/// callers books them all. Nobody waits for others to come. No thread of its own. Thread-safe.
class OrderGroups {
 public:
  /// Gives each order a result or a failure, by `latest`.
  using Book = std::function<void(std::span<PlacedOrder* const> orders, Instant latest)>;

  /// Each caller waits for `patience` at most. Whoever books for others is the one of them that came last, so
  /// that his time ends after theirs.
  OrderGroups(std::shared_ptr<Clock> clock, std::chrono::nanoseconds patience, Book book);

  /// Has the order booked. Blocks for `patience`. Throws what `book` has to say about this order, and when
  /// time is up StoreUnavailable for an order that nobody has begun to book, otherwise OutcomeUnknown.
  Deduction place(Order order);

 private:
  struct Caller;
  using Queue = std::list<std::shared_ptr<Caller>>;
  struct Article {
    Queue waiting{};
    bool busy = false;
  };

  void await(std::unique_lock<std::mutex>& held, Article& article, Caller& caller);
  [[noreturn]] void leave(Article& article, Caller& caller);
  void lead(std::unique_lock<std::mutex>& held, Article& article, const Caller& leader);
  std::shared_ptr<Caller> handOn(Article& article, const std::string& sku);
  void bookAll(const Queue& group, Instant latest);

  const std::shared_ptr<Clock> clock_;
  const std::chrono::nanoseconds patience_;
  const Book book_;

  std::mutex mutex_;
  std::unordered_map<std::string, Article> articles_;  // of which orders are being booked
};

}  // namespace lockkeeper::inventory
