#include "lock/wake_ups.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <exception>
#include <utility>
#include <vector>

namespace lockkeeper::postgres {
namespace {

constexpr std::chrono::seconds longestUnused{5};

}  // namespace

WakeUps::WakeUps(Sessions& sessions, std::string channel)
    : sessions_(sessions), channel_(std::move(channel)), wakeUp_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

WakeUps::~WakeUps() {
  if (wakeUp_ >= 0) ::close(wakeUp_);
}

void WakeUps::listen(Instant deadline) noexcept {
  std::unique_lock held(mutex_);
  ++listeners_;
  while (opening_ && sessions_.clock().now() < deadline) sessions_.clock().wait(held, changed_, deadline);
  if (session_ && (listeners_ > 1 || isAlive())) return;
  if (opening_) return;
  opening_ = true;
  auto old = std::move(session_);
  held.unlock();
  old.reset();
  std::unique_ptr<Session> opened;
  try {
    opened = sessions_.open(deadline);
    if (opened->isDirect()) {
      opened->command("LISTEN \"" + channel_ + "\"", deadline);
    } else {
      opened.reset();
    }
  } catch (const std::exception&) {
    opened.reset();
  }
  held.lock();
  opening_ = false;
  session_ = std::move(opened);
  // What the server has told before this is lost.
  for (auto& [place, isNotified] : notified_) isNotified = true;
  changed_.notify_all();
}

void WakeUps::add(std::int64_t place) {
  const std::lock_guard held(mutex_);
  notified_.try_emplace(place, false);
}

void WakeUps::unlisten(std::optional<std::int64_t> place, bool isGranted) noexcept {
  std::unique_ptr<Session> closing;
  const std::lock_guard held(mutex_);
  if (place) notified_.erase(*place);
  if (--listeners_ > 0) return;
  unusedSince_ = sessions_.clock().now();
  if (!isGranted) closing = std::move(session_);
}

void WakeUps::tidyUp() noexcept {
  std::unique_ptr<Session> closing;
  const std::lock_guard held(mutex_);
  if (!session_ || listeners_ > 0) return;
  const bool isOld = sessions_.clock().now() > unusedSince_ + longestUnused;
  if (isOld || !isAlive()) closing = std::move(session_);
}

// Nobody reads it.
bool WakeUps::isAlive() noexcept {
  try {
    session_->awaitNotifications([](auto, auto) {}, sessions_.clock().now());
    return sessions_.isCurrent(*session_);
  } catch (const std::exception&) {
    return false;
  }
}

bool WakeUps::await(std::int64_t place, Instant until, const std::stop_token& stop) noexcept {
  const std::stop_callback wake(stop, [this] {
    constexpr std::uint64_t one = 1;
    static_cast<void>(::write(wakeUp_, &one, sizeof(one)) == 0);
    const std::lock_guard held(mutex_);
    changed_.notify_all();
  });
  std::unique_lock held(mutex_);
  while (session_ && !notified_[place] && !stop.stop_requested() && sessions_.clock().now() < until) {
    if (reading_) {
      sessions_.clock().wait(held, changed_, until);
    } else {
      read(held, until);
    }
  }
  notified_[place] = false;
  return session_ != nullptr;
}

// The mutex is free while the thread waits for the server.
void WakeUps::read(std::unique_lock<std::mutex>& held, Instant until) {
  reading_ = true;
  held.unlock();
  std::vector<std::int64_t> places;
  bool isOver = false;
  try {
    session_->awaitNotifications(
        [&](std::string_view /*channel*/, std::string_view text) {
          std::int64_t place = 0;
          std::from_chars(text.data(), text.data() + text.size(), place);
          places.push_back(place);
        },
        until, wakeUp_);
  } catch (const std::exception&) {
    isOver = true;
  }
  std::uint64_t count = 0;
  static_cast<void>(::read(wakeUp_, &count, sizeof(count)) == 0);
  held.lock();
  reading_ = false;
  for (const std::int64_t place : places) {
    const auto waiter = notified_.find(place);
    if (waiter != notified_.end()) waiter->second = true;
  }
  if (isOver || !sessions_.isCurrent(*session_)) session_.reset();
  changed_.notify_all();
}

}  // namespace lockkeeper::postgres
