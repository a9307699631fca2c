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
  // Mostly it sleeps for a guard that is long gone and will find this one when it wakes up.
  if (until < watch_.sleepsUntil_) watch_.changed_.notify_all();
}

SocketWatch::Guard::~Guard() {
  std::lock_guard guard(watch_.mutex_);
  watch_.sockets_.erase(entry_);
}

void SocketWatch::run() {
  std::unique_lock held(mutex_);
  while (!stopping_) {
    const Instant now = clock_->now();
    sleepsUntil_ = Instant::max();
    for (auto& [until, socket] : sockets_) {
      if (until > now) {
        sleepsUntil_ = until;
        break;
      }
      if (socket != expired) ::shutdown(socket, SHUT_RDWR);
      socket = expired;
    }
    clock_->wait(held, changed_, sleepsUntil_);
  }
}

}  // namespace lockkeeper::mysql
