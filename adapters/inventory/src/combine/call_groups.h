#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/error.h"

namespace lockkeeper::inventory {

/// Group commit: calls on one article that come while others on it are being written gather, and one of their
/// callers writes them all. Nobody waits for others to come. No thread of its own. Thread-safe.
///
/// A Call has `const std::string& sku() const` and `std::exception_ptr failure`, and room for its result.
template <class Call>
class CallGroups {
 public:
  /// Gives each call a result or a failure, by `latest`.
  using Write = std::function<void(std::span<Call* const> calls, Instant latest)>;

  /// Whoever writes for others is the one of them whose time ends last.
  CallGroups(std::shared_ptr<Clock> clock, Write write)
      : clock_(std::move(clock)), write_(std::move(write)) {}

  /// Has the call written, and returns it with its result. Blocks until `latest` at most. Throws its failure,
  /// and when time is up StoreUnavailable for a call that nobody has begun to write, otherwise
  /// OutcomeUnknown.
  Call place(Call call, Instant latest);

  /// Writes the call by itself, at once. Blocks until `latest` at most. Throws its failure.
  Call placeAlone(Call call, Instant latest);

 private:
  // A transaction of so many takes some 10 ms, in which others wait for the row.
  static constexpr std::size_t mostTogether = 512;

  enum class Progress { waiting, chosen /* to write for the group */, underWay, done };

  struct Caller : Call {
    Caller(Call its, Instant latest) : Call(std::move(its)), deadline(latest) {}

    const Instant deadline;
    Progress progress = Progress::waiting;
    std::condition_variable wakeUp{};
  };

  using Queue = std::list<std::shared_ptr<Caller>>;
  struct Article {
    Queue waiting{};
    bool busy = false;
  };

  void await(std::unique_lock<std::mutex>& held, Article& article, Caller& caller);
  [[noreturn]] void leave(Article& article, Caller& caller);
  void lead(std::unique_lock<std::mutex>& held, Article& article, const Caller& leader);
  std::shared_ptr<Caller> handOn(Article& article, const std::string& sku);
  void writeAll(const Queue& group, Instant latest);

  const std::shared_ptr<Clock> clock_;
  const Write write_;

  std::mutex mutex_{};
  std::unordered_map<std::string, Article> articles_{};  // on which calls are being written
};

template <class Call>
Call CallGroups<Call>::place(Call call, Instant latest) {
  const auto caller = std::make_shared<Caller>(std::move(call), latest);
  Queue mine{caller};
  std::unique_lock held(mutex_);
  Article& article = articles_[caller->sku()];
  article.waiting.splice(article.waiting.end(), mine);
  if (std::exchange(article.busy, true)) {
    await(held, article, *caller);
  } else {
    caller->progress = Progress::chosen;
  }
  if (caller->progress == Progress::chosen) lead(held, article, *caller);
  if (caller->failure) std::rethrow_exception(caller->failure);
  return std::move(static_cast<Call&>(*caller));
}

template <class Call>
Call CallGroups<Call>::placeAlone(Call call, Instant latest) {
  Call* const only = &call;
  write_({&only, 1}, latest);
  if (call.failure) std::rethrow_exception(call.failure);
  return call;
}

template <class Call>
void CallGroups<Call>::await(std::unique_lock<std::mutex>& held, Article& article, Caller& caller) {
  while (caller.progress == Progress::waiting || caller.progress == Progress::underWay) {
    if (clock_->now() >= caller.deadline) leave(article, caller);
    clock_->wait(held, caller.wakeUp, caller.deadline);
  }
}

template <class Call>
void CallGroups<Call>::leave(Article& article, Caller& caller) {
  if (caller.progress == Progress::underWay) {
    throw OutcomeUnknown("the transaction that the call is part of takes too long");
  }
  std::erase_if(article.waiting, [&](const auto& each) { return each.get() == &caller; });
  throw StoreUnavailable("other calls on the article took too long");
}

/// Whoever leads is among the first that wait, so that he is in the group.
template <class Call>
void CallGroups<Call>::lead(std::unique_lock<std::mutex>& held, Article& article, const Caller& leader) {
  Queue group;
  const auto count = static_cast<std::ptrdiff_t>(std::min(mostTogether, article.waiting.size()));
  group.splice(group.end(), article.waiting, article.waiting.begin(),
               std::next(article.waiting.begin(), count));
  for (const auto& each : group) each->progress = Progress::underWay;
  held.unlock();
  writeAll(group, leader.deadline);
  held.lock();
  for (const auto& each : group) each->progress = Progress::done;
  const std::shared_ptr<Caller> next = handOn(article, leader.sku());
  held.unlock();
  for (const auto& each : group) {
    if (each.get() != &leader) each->wakeUp.notify_one();
  }
  // After those who are done: what they call next may come in time for the group.
  if (next) next->wakeUp.notify_one();
}

/// The one that writes next; null when nobody waits.
template <class Call>
auto CallGroups<Call>::handOn(Article& article, const std::string& sku) -> std::shared_ptr<Caller> {
  if (article.waiting.empty()) {
    articles_.erase(sku);
    return nullptr;
  }
  const auto count = static_cast<std::ptrdiff_t>(std::min(mostTogether, article.waiting.size()));
  const auto first = article.waiting.begin();
  const std::shared_ptr<Caller>& next =
      *std::max_element(first, std::next(first, count),
                        [](const auto& one, const auto& other) { return one->deadline < other->deadline; });
  next->progress = Progress::chosen;
  return next;
}

template <class Call>
void CallGroups<Call>::writeAll(const Queue& group, Instant latest) {
  try {
    std::vector<Call*> calls;
    calls.reserve(group.size());
    for (const auto& each : group) calls.push_back(each.get());
    write_(calls, latest);
  } catch (...) {
    for (const auto& each : group) each->failure = std::current_exception();
  }
}

}  // namespace lockkeeper::inventory
