#include "session/session_pool.h"

#include <utility>

#include "lockkeeper/error.h"

namespace lockkeeper::mysql {

SessionPool::SessionPool(Opener open, std::size_t most, std::string display, std::shared_ptr<Clock> clock)
    : open_(std::move(open)), most_(most), display_(std::move(display)), clock_(std::move(clock)) {}

std::unique_ptr<ServerSession> SessionPool::take(Instant deadline) {
  std::vector<std::unique_ptr<ServerSession>> dead;
  {
    std::unique_lock held(mutex_);
    while (used_ == most_) {
      if (clock_->now() >= deadline) {
        throw StoreUnavailable(display_ + ": all " + std::to_string(most_) + " sessions stayed in use");
      }
      clock_->wait(held, returned_, deadline);
    }
    ++used_;
    while (!idle_.empty()) {
      auto session = std::move(idle_.back());
      idle_.pop_back();
      // No reply is due: what can be read is the session's end.
      if (!session->readable()) return session;
      dead.push_back(std::move(session));
    }
  }
  try {
    return open_(deadline);
  } catch (...) {
    putBack(nullptr);
    throw;
  }
}

void SessionPool::putBack(std::unique_ptr<ServerSession> session) {
  {
    const std::lock_guard held(mutex_);
    --used_;
    if (session) idle_.push_back(std::move(session));
  }
  returned_.notify_one();
}

SessionPool::Use::Use(SessionPool& pool, Instant deadline) : pool_(pool), session_(pool.take(deadline)) {}

SessionPool::Use::~Use() {
  if (!keep_) session_.reset();
  pool_.putBack(std::move(session_));
}

}  // namespace lockkeeper::mysql
