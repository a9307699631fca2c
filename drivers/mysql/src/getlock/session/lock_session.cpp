#include "getlock/session/lock_session.h"

#include <algorithm>

#include "getlock/session/getlock_statements.h"
#include "session/statements/sql_text.h"

namespace lockkeeper::mysql {
namespace {

// A statement may take so long to the server.
constexpr std::chrono::milliseconds underWay{100};

}  // namespace

void LockSession::begin(std::chrono::seconds idle) {
  batch.clear();
  preamble_ = 0;
  nextIdleTimeout_ = held.empty() && idle.count() > 0 ? idle : std::max(idle, idleTimeout);
  if (!toFree.empty()) {
    statements::addFree(batch, toFree);
    ++preamble_;
  }
  if (nextIdleTimeout_ != idleTimeout) {
    batch += idleLimit(nextIdleTimeout_) + ";";
    ++preamble_;
  }
}

bool LockSession::send(Instant now, Instant until) {
  sentAt = now;
  replyDue = server->send(batch, until);
  return replyDue;
}

const Reply& LockSession::receive(Instant until) {
  Reply& reply = server->receive(until);
  replyDue = false;
  if (reply.answered >= preamble_) {
    reply.answered -= preamble_;
    idleTimeout = nextIdleTimeout_;
    toFree.clear();
  } else {
    reply.answered = 0;
  }
  return reply;
}

Instant LockSession::lastEnd() const {
  Instant last = unseen ? unseen->until : Instant::min();
  for (const HeldName* name : held) last = std::max(last, name->end);
  return last;
}

bool LockSession::dead(Instant now) const {
  if (replyDue) return !server->readable() && now >= lastEnd();
  // Nothing is due, so that all it can have to say is goodbye.
  return server->readable() || timedOut(now);
}

bool LockSession::timedOut(Instant now) const {
  return held.empty() && idleTimeout.count() > 0 && now + underWay >= sentAt + idleTimeout;
}

}  // namespace lockkeeper::mysql
