#include "getlock/getlock_impl.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "getlock/getlock_session.h"
#include "getlock/getlock_statements.h"
#include "getlock/lock_name.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "session/reply_fault.h"

namespace lockkeeper::mysql {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The server counts whole seconds of silence.
constexpr milliseconds leastTtl = seconds{1};

// At a busy lock one look in ten finds a claim that has not written its label yet. Hardly any comes before
// that four times.
constexpr int looksForALabel = 4;

// Rounded up: a session may outlive the lease of a silent holder, never the other way round.
seconds idleTimeout(milliseconds ttl) { return std::chrono::ceil<seconds>(ttl); }

void checkTtl(milliseconds ttl) {
  if (ttl >= leastTtl) return;
  throw ConfigError("the ttl is " + formatDuration(ttl) + ": mysql+getlock keeps at least " +
                    formatDuration(leastTtl) + ", because the server counts whole seconds");
}

}  // namespace

GetLockDriver::Impl::Impl(GetLockOptions options, Environment environment)
    : options_(std::move(options)),
      environment_(std::move(environment)),
      watch_(environment_.clock),
      sessions_([this](Instant deadline) { return open(deadline); }, options_.connections,
                options_.server.display, environment_.clock) {}

std::unique_ptr<ServerSession> GetLockDriver::Impl::open(Instant deadline) {
  ReadySession ready = openForLocks(options_, environment_.clock, watch_, deadline);
  {
    const std::lock_guard held(durabilityMutex_);
    if (durability_ == ready.durability) return std::move(ready.session);
    durability_ = ready.durability;
  }
  const std::string durability = promises().durability;
  environment_.tell({.kind = EventKind::noted, .store = display(), .text = durability});
  return std::move(ready.session);
}

AcquireResult GetLockDriver::Impl::acquire(const AcquireRequest& request) {
  checkTtl(request.ttl);
  const std::string name = lockName(request.claim.key);
  for (;;) {
    auto place = sessions_.forClaim(name, request.claim.token, idleTimeout(request.ttl), request.deadline);
    if (const Busy* busy = std::get_if<Busy>(&place)) return *busy;
    Use& use = std::get<Use>(place);
    if (!settle(use, request.deadline)) continue;
    if (sessions_.holds(*use, name, request.claim.token)) {
      return regrant(use, name, request, request.deadline);
    }
    prepareClaim(use, name, request, seconds{0});
    const Instant sentAt = now();
    return outcome(use, exchange(use, request.deadline), name, request, sentAt);
  }
}

void GetLockDriver::Impl::prepareClaim(Use& use, const std::string& name, const AcquireRequest& request,
                                       seconds wait) {
  sessions_.prepare(*use, idleTimeout(request.ttl));
  if (options_.fence) {
    statements::addFencedClaim(use->batch, name, wait, request.claim.owner);
  } else {
    statements::addClaim(use->batch, name, wait);
  }
}

AcquireResult GetLockDriver::Impl::outcome(Use& use, const Reply* reply, const std::string& name,
                                           const AcquireRequest& request, Instant sentAt) {
  const Claim& claim = request.claim;
  const Instant end = sentAt + request.ttl;
  if (reply == nullptr) {
    sessions_.setUnseen(*use, UnseenClaim{name, claim.token, std::string(claim.owner), end});
    throw OutcomeUnknown(display() + ": no reply to the claim by its deadline");
  }
  if (reply->error != 0 && reply->answered == 0) {
    throwLockFault(*reply, claim.key, sessions_.names(*use), display());
  }
  if (reply->error != 0) {
    const Reply fault = *reply;
    giveBack(use, name);
    throwFault(fault, display());
  }
  if (!sameSession(*use, *reply, 1)) lose(use, "another session answered");
  const auto got = reply->number(0);
  if (!got) throw StoreUnavailable(display() + ": the server broke off the claim");
  if (*got != 1) return Busy{};
  const auto fence = options_.fence ? reply->number(2) : std::nullopt;
  sessions_.add({name, claim.token, std::string(claim.owner), fence, end, &*use, use->server->id()});
  return Granted{sentAt, request.ttl, fence};
}

Granted GetLockDriver::Impl::regrant(Use& use, const std::string& name, const AcquireRequest& request,
                                     Instant deadline) {
  const Instant sentAt = now();
  const auto held = sessions_.look(name);
  if (!sessions_.extend(*use, name, request.claim.token, sentAt + request.ttl)) lose(use, "the lock is lost");
  sessions_.prepare(*use, idleTimeout(request.ttl));
  statements::addTouch(use->batch);
  const Reply* const reply = exchange(use, deadline);
  if (reply == nullptr) throw OutcomeUnknown(display() + ": no reply by the deadline");
  if (reply->error != 0) throwFault(*reply, display());
  if (!sameSession(*use, *reply, 0)) lose(use, "another session answered");
  return {sentAt, request.ttl, held->fence};
}

ReleaseOutcome GetLockDriver::Impl::release(const Claim& claim, Instant deadline) {
  const std::string name = lockName(claim.key);
  auto use = sessions_.holding(name, claim.token, deadline);
  if (!use || !settle(*use, deadline)) return ReleaseOutcome::notOwner;
  LockSession& session = **use;
  sessions_.prepare(session, seconds{0});
  // A lease that has ended is freed by the preamble, but was not the claim's any more.
  const bool owner = sessions_.holds(session, name, claim.token);
  if (owner) {
    statements::addRelease(session.batch, name);
  } else {
    statements::addTouch(session.batch);
  }
  const Reply* const reply = exchange(*use, deadline);
  if (!owner) return ReleaseOutcome::notOwner;
  if (reply != nullptr && reply->error != 0) throwFault(*reply, display());
  sessions_.remove(session, name, claim.token);
  if (reply == nullptr) throw OutcomeUnknown(display() + ": no reply to the release by its deadline");
  if (reply->number(0) == 1 && sameSession(session, *reply, 1)) return ReleaseOutcome::released;
  use->close();
  return ReleaseOutcome::notOwner;
}

std::optional<Holder> GetLockDriver::Impl::holder(std::string_view key, Instant deadline) {
  const std::string name = lockName(key);
  for (int looks = 0;;) {
    Use use = sessions_.forLooking(name, deadline);
    if (!settle(use, deadline)) continue;
    sessions_.prepare(*use, seconds{0});
    statements::addLook(use->batch, name, options_.fence, looks > 0);
    try {
      const Reply* const reply = exchange(use, deadline);
      if (reply == nullptr) throw StoreUnavailable(display() + ": no reply by the deadline");
      if (reply->error != 0) throwFault(*reply, display());
      if (!sameSession(*use, *reply, 1)) lose(use, "another session answered, or none");
      std::optional<Holder> found = holderIn(*reply, name);
      // A claim that is just being granted has the lock before it has written its label.
      const bool named = !found || !options_.fence || found->fence;
      if (named || ++looks == looksForALabel) return found;
    } catch (const OutcomeUnknown& lost) {
      // The server ends sessions whose leases have ended, perhaps this very moment: another one may ask. It
      // is only a question.
      if (now() >= deadline) throw StoreUnavailable(lost.what());
    }
  }
}

std::optional<Holder> GetLockDriver::Impl::holderIn(const Reply& reply, const std::string& name) {
  const auto session = reply.number(0);
  if (!session) return std::nullopt;
  Holder holder;
  if (reply.number(3) == session) {
    holder.fence = reply.number(2);
    holder.owner = reply.text(4);
  }
  if (const auto ours = sessions_.look(name); ours && ours->sessionId == *session) {
    holder.owner = ours->owner;
    holder.remaining = std::max(std::chrono::ceil<milliseconds>(ours->end - now()), milliseconds{0});
  }
  return holder;
}

Promises GetLockDriver::Impl::promises() const {
  const std::string locks = "locks end with the server, and with its connection to their holder";
  if (!options_.fence) return {FencePromise::none, locks};
  const std::lock_guard held(durabilityMutex_);
  return {FencePromise::durable, locks + "; fences: " + durability_};
}

bool GetLockDriver::Impl::settle(Use& use, Instant deadline) {
  LockSession& session = *use;
  if (!session.replyDue) return true;
  if (!session.server->await(deadline)) {
    throw StoreUnavailable(display() + ": the session still waits for an answer of the server");
  }
  const Reply& reply = session.receive(now() + options_.ioTimeout);
  const auto unseen = session.unseen;
  sessions_.setUnseen(session, std::nullopt);
  if (reply.lost()) {
    use.close();
    return false;
  }
  if (!unseen) return true;
  if (reply.error == 0 && reply.number(0) == 1 && sameSession(session, reply, 1)) {
    // Its lease counts as ended: the claim itself may still take it up, everything else frees it.
    const auto fence = options_.fence ? reply.number(2) : std::nullopt;
    sessions_.add({unseen->name, unseen->token, unseen->owner, fence, now(), &session, session.server->id()});
  } else if (reply.error != 0 && reply.answered > 0) {
    session.toFree.push_back(unseen->name);
  }
  return true;
}

const Reply* GetLockDriver::Impl::exchange(Use& use, Instant deadline) {
  send(use, deadline);
  if (!use->server->await(deadline)) return nullptr;
  return &receive(use);
}

void GetLockDriver::Impl::send(Use& use, Instant deadline) {
  if (now() >= deadline) throw StoreUnavailable(display() + ": the deadline has passed; nothing was sent");
  if (!use->send(now())) lose(use, "the connection is lost");
}

const Reply& GetLockDriver::Impl::receive(Use& use) {
  const Reply& reply = use->receive(now() + options_.ioTimeout);
  if (reply.lost()) lose(use, reply.reason);
  return reply;
}

void GetLockDriver::Impl::giveBack(Use& use, const std::string& name) {
  use->toFree.push_back(name);
  sessions_.prepare(*use, seconds{0});
  statements::addTouch(use->batch);
  static_cast<void>(exchange(use, now() + options_.ioTimeout));
}

void GetLockDriver::Impl::lose(Use& use, const std::string& why) {
  const std::string message = display() + ": " + why + "; its locks end with the session";
  use.close();
  throw OutcomeUnknown(message);
}

bool GetLockDriver::Impl::sameSession(const LockSession& session, const Reply& reply, std::size_t column) {
  return reply.number(column) == session.server->id();
}

}  // namespace lockkeeper::mysql
