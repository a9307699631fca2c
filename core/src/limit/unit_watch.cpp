#include "limit/unit_watch.h"

#include <iterator>
#include <new>
#include <system_error>

namespace lockkeeper::detail {

namespace {

// Until keys are looked at again for which there was no memory.
constexpr std::chrono::seconds shortagePause{1};

}  // namespace

void UnitWatch::watch(std::string_view key, Instant at) {
  const std::lock_guard guard(mutex_);
  const auto added = looks_.emplace(at, key);
  if (added == looks_.begin()) wakeUp_.notify_one();
  startThread();
}

bool UnitWatch::isFull() {
  const std::lock_guard guard(mutex_);
  if (!looks_.empty()) startThread();
  return looks_.size() + beingLookedAt_ >= mostKeys;
}

void UnitWatch::startThread() {
  if (thread_.joinable()) return;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    // The next call tries again.
  }
}

void UnitWatch::close() {
  {
    const std::lock_guard guard(mutex_);
    closing_ = true;
    wakeUp_.notify_one();
  }
  if (thread_.joinable()) {
    thread_.join();
  } else {
    run();  // which now is only the last look
  }
}

void UnitWatch::run() {
  std::unique_lock held(mutex_);
  while (!closing_) {
    const Instant now = clock_->now();
    std::vector<std::string> due;
    try {
      due = takeDue(now);
    } catch (const std::bad_alloc&) {
      clock_->wait(held, wakeUp_, saturatingAdd(now, shortagePause));
      continue;
    }
    if (due.empty()) {
      clock_->wait(held, wakeUp_, looks_.empty() ? Instant::max() : looks_.begin()->first);
      continue;
    }
    beingLookedAt_ = due.size();
    held.unlock();
    look_(due, false);
    held.lock();
    beingLookedAt_ = 0;
  }
  std::vector<std::string> rest;
  try {
    rest = takeDue(Instant::max());
  } catch (const std::bad_alloc&) {
    return;  // their units count as used
  }
  held.unlock();
  look_(rest, true);
}

// Without memory for that, takes none.
std::vector<std::string> UnitWatch::takeDue(Instant now) {
  const auto end = looks_.upper_bound(now);
  std::vector<std::string> due;
  due.reserve(static_cast<std::size_t>(std::distance(looks_.begin(), end)));
  for (auto each = looks_.begin(); each != end; ++each) due.push_back(std::move(each->second));
  looks_.erase(looks_.begin(), end);
  return due;
}

}  // namespace lockkeeper::detail
