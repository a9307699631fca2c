#include "session/session_pool.h"

#include <utility>

#include "lockkeeper/error.h"
#include "session/reply_fault.h"

namespace lockkeeper::mysql {

std::unique_ptr<ServerSession> SessionPool::take(Instant deadline) {
  std::vector<std::unique_ptr<ServerSession>> dead;
  {
    std::unique_lock held(mutex_);
    while (used_ == most_) {
      if (clock().now() >= deadline) {
        throw StoreUnavailable(display() + ": all " + std::to_string(most_) + " sessions stayed in use");
      }
      clock().wait(held, returned_, deadline);
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
    return opener_.open(deadline);
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

void SessionPool::closeIdle() {
  std::vector<std::unique_ptr<ServerSession>> closing;
  const std::lock_guard held(mutex_);
  closing.swap(idle_);
}

SessionPool::Use::Use(SessionPool& pool, Instant deadline) : pool_(pool), session_(pool.take(deadline)) {}

SessionPool::Use::~Use() {
  if (!keep_) session_.reset();
  pool_.putBack(std::move(session_));
}

const Reply& SessionPool::Use::ask(std::string_view statements, Instant deadline) {
  const Reply& reply = session_->query(statements, deadline);
  if (reply.error == 0) return reply;
  const Reply failed = reply;
  const bool replaced = failed.lost() || kindOf(failed.error) == FaultKind::notPrimary;
  if (replaced) {
    // When one is dead, they mostly all are.
    pool_.closeIdle();
  } else if (session_->query("ROLLBACK", deadline).error == 0) {
    keep();
  }
  pool_.opener_.fail(failed);
}

}  // namespace lockkeeper::mysql
