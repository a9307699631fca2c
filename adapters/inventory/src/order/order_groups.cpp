#include "order/order_groups.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace lockkeeper::inventory {
namespace {

// A transaction of so many takes some 10 ms, in which others wait for the row.
constexpr std::size_t mostTogether = 512;

}  // namespace

struct OrderGroups::Caller : PlacedOrder {
  enum class State { waiting, chosen /* to book for the group */, underWay, done };

  Caller(Order its, Instant latest) : PlacedOrder{.order = std::move(its)}, deadline(latest) {}

  const Instant deadline;
  State state = State::waiting;
  std::condition_variable wakeUp;
};

OrderGroups::OrderGroups(std::shared_ptr<Clock> clock, std::chrono::nanoseconds patience, Book book)
    : clock_(std::move(clock)), patience_(patience), book_(std::move(book)) {}

Deduction OrderGroups::place(Order order) {
  const auto caller = std::make_shared<Caller>(std::move(order), saturatingAdd(clock_->now(), patience_));
  Queue mine{caller};
  std::unique_lock held(mutex_);
  Article& article = articles_[caller->order.sku];
  article.waiting.splice(article.waiting.end(), mine);
  if (std::exchange(article.busy, true)) {
    await(held, article, *caller);
  } else {
    caller->state = Caller::State::chosen;
  }
  if (caller->state == Caller::State::chosen) lead(held, article, *caller);
  if (caller->failure) std::rethrow_exception(caller->failure);
  return caller->result;
}

void OrderGroups::await(std::unique_lock<std::mutex>& held, Article& article, Caller& caller) {
  while (caller.state == Caller::State::waiting || caller.state == Caller::State::underWay) {
    if (clock_->now() >= caller.deadline) leave(article, caller);
    clock_->wait(held, caller.wakeUp, caller.deadline);
  }
}

void OrderGroups::leave(Article& article, Caller& caller) {
  if (caller.state == Caller::State::underWay) {
    throw OutcomeUnknown("the transaction that the order is part of takes too long");
  }
  std::erase_if(article.waiting, [&](const auto& each) { return each.get() == &caller; });
  throw StoreUnavailable("other orders of the article took too long");
}

/// Whoever leads is among the first that wait, so that he is in the group.
void OrderGroups::lead(std::unique_lock<std::mutex>& held, Article& article, const Caller& leader) {
  Queue group;
  const auto count = static_cast<std::ptrdiff_t>(std::min(mostTogether, article.waiting.size()));
  group.splice(group.end(), article.waiting, article.waiting.begin(),
               std::next(article.waiting.begin(), count));
  for (const auto& each : group) each->state = Caller::State::underWay;
  held.unlock();
  bookAll(group, leader.deadline);
  held.lock();
  for (const auto& each : group) each->state = Caller::State::done;
  const std::shared_ptr<Caller> next = handOn(article, leader.order.sku);
  held.unlock();
  for (const auto& each : group) {
    if (each.get() != &leader) each->wakeUp.notify_one();
  }
  // After those who are done: what they order next may come in time for the group.
  if (next) next->wakeUp.notify_one();
}

/// The one that books next; null when nobody waits.
std::shared_ptr<OrderGroups::Caller> OrderGroups::handOn(Article& article, const std::string& sku) {
  if (article.waiting.empty()) {
    articles_.erase(sku);
    return nullptr;
  }
  const auto last = std::min(mostTogether, article.waiting.size()) - 1;
  const std::shared_ptr<Caller>& next =
      *std::next(article.waiting.begin(), static_cast<std::ptrdiff_t>(last));
  next->state = Caller::State::chosen;
  return next;
}

void OrderGroups::bookAll(const Queue& group, Instant latest) {
  try {
    std::vector<PlacedOrder*> orders;
    orders.reserve(group.size());
    for (const auto& each : group) orders.push_back(each.get());
    book_(orders, latest);
  } catch (...) {
    for (const auto& each : group) each->failure = std::current_exception();
  }
}

}  // namespace lockkeeper::inventory
