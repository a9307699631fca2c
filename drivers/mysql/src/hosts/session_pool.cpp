#include "hosts/session_pool.h"

#include <algorithm>
#include <utility>

#include "lockkeeper/error.h"
#include "session/reply_fault.h"

namespace lockkeeper::mysql {
namespace {

// A server that is well ends a statement in less.
constexpr std::chrono::milliseconds longestCancel{500};

// Statements that end in COMMIT have no ';' inside of a literal.
bool isLast(const Reply& failed, std::string_view statements) {
  return failed.answered == static_cast<std::size_t>(std::ranges::count(statements, ';'));
}

}  // namespace

std::unique_ptr<ServerSession> SessionPool::take(Instant deadline, Instant freeBy) {
  std::vector<std::unique_ptr<ServerSession>> dead;
  {
    std::unique_lock held(mutex_);
    while (used_ == most_) {
      if (clock().now() >= freeBy) {
        throw SessionsInUse(display() + ": all " + std::to_string(most_) + " sessions stayed in use");
      }
      clock().wait(held, free_, freeBy);
    }
    if (auto session = takeIdle(dead)) return session;
    ++used_;
  }
  try {
    return opener_.open(deadline);
  } catch (const StoreUnavailable&) {
    putBack(nullptr);
    if (auto other = takeReturned(std::min(deadline, freeBy))) return other;
    throw;
  } catch (...) {
    putBack(nullptr);
    throw;
  }
}

std::unique_ptr<ServerSession> SessionPool::takeReturned(Instant deadline) {
  std::vector<std::unique_ptr<ServerSession>> dead;
  std::unique_lock held(mutex_);
  for (;;) {
    if (auto session = takeIdle(dead)) return session;
    if (used_ == 0 || clock().now() >= deadline) break;
    clock().wait(held, returned_, deadline);
  }
  // What has woken it up may be of use to the next one.
  returned_.notify_one();
  return nullptr;
}

std::unique_ptr<ServerSession> SessionPool::takeIdle(std::vector<std::unique_ptr<ServerSession>>& dead) {
  while (!idle_.empty()) {
    auto session = std::move(idle_.back());
    idle_.pop_back();
    // No reply is due: what can be read is the session's end.
    if (!session->readable() && opener_.isCurrent(*session)) {
      ++used_;
      return session;
    }
    dead.push_back(std::move(session));
  }
  return nullptr;
}

void SessionPool::putBack(std::unique_ptr<ServerSession> session) noexcept {
  {
    const std::lock_guard held(mutex_);
    --used_;
    if (session && opener_.isCurrent(*session)) idle_.push_back(std::move(session));
  }
  free_.notify_one();
  returned_.notify_one();
}

void SessionPool::closeIdle() {
  std::vector<std::unique_ptr<ServerSession>> closing;
  closing.reserve(most_);  // for those to come
  const std::lock_guard held(mutex_);
  closing.swap(idle_);
}

SessionPool::Use::Use(SessionPool& pool, Instant deadline, Instant freeBy)
    : pool_(pool), session_(pool.take(deadline, freeBy)) {}

SessionPool::Use::~Use() {
  if (!keep_ || close_ || mayBeHit_) session_.reset();
  pool_.putBack(std::move(session_));
}

const Reply& SessionPool::Use::ask(std::string_view statements, Instant deadline) {
  return checked(asked().query(statements, deadline), statements, deadline);
}

const Reply& SessionPool::Use::execute(const std::string& statement,
                                       std::span<const ServerSession::Parameter> parameters,
                                       Instant deadline) {
  return checked(asked().execute(statement, parameters, deadline), statement, deadline);
}

const Reply& SessionPool::Use::receive(std::string_view statements, Instant deadline) {
  return checked(asked().receive(deadline), statements, deadline);
}

const Reply& SessionPool::Use::askOrCancel(std::string_view statements, Instant cancelAt, Instant deadline,
                                           SessionPool& cancelling) {
  if (!asked().send(statements, cancelAt)) {
    return checked(session_->answer(clock().now()), statements, deadline);
  }
  if (session_->await(cancelAt)) return checked(session_->receive(deadline), statements, deadline);
  // What is to end this statement may come too late, and end the next one of the session.
  mayBeHit_ = true;
  const bool cancelled = cancelling.cancel(*session_, cancelAt + (deadline - cancelAt) / 2);
  // Then the server is well, and its answer on the way.
  const Reply& reply = session_->answer(cancelled ? deadline + pool_.opener_.options().ioTimeout : deadline);
  if (cancelled && reply.error != 0) mayBeHit_ = false;
  return checked(reply, statements, deadline);
}

const Reply& SessionPool::Use::checked(const Reply& reply, std::string_view statements, Instant deadline) {
  if (reply.error == 0) return reply;
  const Reply failed = reply;
  const bool replaced = failed.lost() || kindOf(failed.error) == FaultKind::notPrimary;
  if (replaced) {
    // When one is dead, they mostly all are.
    if (!slow_ || clock().now() < deadline) pool_.closeIdle();
  } else if (session_->query("ROLLBACK", deadline).error == 0) {
    keep();
  }
  const bool open = isInterrupted(failed.error) || kindOf(failed.error) == FaultKind::refused;
  if (open && isLast(failed, statements) && statements.ends_with("COMMIT")) {
    throw OutcomeUnknown(pool_.display() + ": the commit was broken off: " + failed.reason);
  }
  pool_.opener_.fail(failed);
}

bool SessionPool::cancel(const ServerSession& session, Instant deadline) {
  try {
    Use use(*this, deadline);
    if (!use.session().reaches(session)) return false;
    use.ask("KILL QUERY " + std::to_string(session.id()), deadline);
    use.keep();
    return true;
  } catch (const Error&) {
    return false;
  }
}

Instant SessionPool::latestCancel(Instant deadline) {
  const auto left = deadline - clock().now();
  const std::lock_guard held(mutex_);
  // More time where it takes a log-in.
  return deadline - std::min<Instant::duration>(left / (idle_.empty() ? 2 : 4), longestCancel);
}

}  // namespace lockkeeper::mysql
