#include "session/socket_watch.h"

#include <sys/socket.h>

namespace lockkeeper::mysql {
namespace {

constexpr int expired = -1;

}  // namespace

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

SocketWatch::Guard::Guard(SocketWatch& watch, int socket, Instant until) : watch_(watch) {
  std::lock_guard guard(watch_.mutex_);
  entry_ = watch_.sockets_.emplace(until, socket);
  if (until >= watch_.sleepsUntil_) return;
  watch_.sleepsUntil_ = until;
  watch_.changed_.notify_all();
}

SocketWatch::Guard::~Guard() {
  std::lock_guard guard(watch_.mutex_);
  watch_.sockets_.erase(entry_);
}

void SocketWatch::run() {
  std::unique_lock held(mutex_);
  while (!stopping_) {
    const Instant now = clock_->now();
    auto first = sockets_.begin();
    for (; first != sockets_.end() && first->first <= now; ++first) {
      if (first->second != expired) ::shutdown(first->second, SHUT_RDWR);
      first->second = expired;
    }
    // By now, the guard that woke this thread has usually gone. The thread still sleeps only until that
    // guard's time, so that later guards need not wake it.
    if (sleepsUntil_ <= now) sleepsUntil_ = first == sockets_.end() ? Instant::max() : first->first;
    clock_->wait(held, changed_, sleepsUntil_);
  }
}

}  // namespace lockkeeper::mysql
