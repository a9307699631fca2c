#include "session/wait/socket_watch.h"

#include <sys/socket.h>

#include <algorithm>

namespace lockkeeper::mysql {

SocketWatch::SocketWatch(std::shared_ptr<Clock> clock) : clock_(std::move(clock)) {}

SocketWatch::~SocketWatch() {
  {
    std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void SocketWatch::start() {
  std::lock_guard guard(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
}

SocketWatch::Socket::Socket(SocketWatch& watch, int number) : watch_(watch), number_(number) {
  std::lock_guard guard(watch_.mutex_);
  watch_.sockets_.push_back(this);
}

SocketWatch::Socket::~Socket() {
  std::lock_guard guard(watch_.mutex_);
  std::erase(watch_.sockets_, this);
}

// The thread tells until when it sleeps before it looks at the sockets: either it sees this one's time, or
// that is compared with what it has told.
SocketWatch::Guard::Guard(Socket& socket, Instant until) : socket_(socket) {
  socket_.until_ = until;
  SocketWatch& watch = socket_.watch_;
  if (until >= watch.sleepsUntil_.load()) return;
  std::lock_guard guard(watch.mutex_);
  if (until >= watch.sleepsUntil_.load()) return;
  watch.sleepsUntil_ = until;
  watch.changed_.notify_all();
}

void SocketWatch::run() {
  std::unique_lock held(mutex_);
  while (!stopping_) {
    const Instant now = clock_->now();
    // By now, the guard that woke this thread has usually gone. The thread still sleeps only until that
    // guard's time, so that later guards need not wake it.
    const bool isOver = sleepsUntil_.load() <= now;
    if (isOver) sleepsUntil_ = Instant::max();
    const Instant next = shutDownExpired(now);
    if (isOver) sleepsUntil_ = next;
    clock_->wait(held, changed_, sleepsUntil_);
  }
}

// Returns when the next one expires.
Instant SocketWatch::shutDownExpired(Instant now) {
  Instant next = Instant::max();
  for (Socket* const each : sockets_) {
    Instant until = each->until_;
    if (until > now) {
      next = std::min(next, until);
    } else if (each->until_.compare_exchange_strong(until, Instant::max())) {
      ::shutdown(each->number_, SHUT_RDWR);
    }
  }
  return next;
}

}  // namespace lockkeeper::mysql
