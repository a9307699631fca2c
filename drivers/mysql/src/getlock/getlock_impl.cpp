#include "getlock/getlock_impl.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "getlock/session/getlock_statements.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "schema.h"
#include "session/lock_name.h"
#include "session/reply_fault.h"
#include "session/server_check.h"

namespace lockkeeper::mysql {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The server counts whole seconds of silence.
constexpr seconds leastTtl{1};

// At a busy lock one look in ten finds a claim that has not written its label yet. Hardly any comes before
// that four times.
constexpr int queriesForALabel = 4;

// Fences are drawn in one short statement each.
constexpr std::size_t mostFenceSessions = 4;

// Rounded up: a session may outlive the lease of a silent holder, never the other way round.
seconds idleTimeout(milliseconds ttl) { return std::chrono::ceil<seconds>(ttl); }

// A claim that was sent before may have its fence already, and no others.
std::uint32_t fenceCount(const AcquireRequest& request) { return request.resend ? 1 : request.localHolders; }

Preparation preparationOf(const GetLockOptions& options) {
  Preparation preparation{.rules = statements::sessionRules, .forNamedLocks = true, .tellsDurability = true};
  if (options.fence) {
    preparation.schema = getlockSchema;
    preparation.checkTable = statements::checkFences();
    preparation.schemaFile = "getlock.sql";
    preparation.readTable = statements::readFences();
  }
  return preparation;
}

}  // namespace

GetLockDriver::Impl::Impl(const GetLockOptions& options, const StoreUri& uri, const Environment& environment)
    : rates(uri, environment),
      opener_(options, preparationOf(options), environment),
      sessions_(opener_, options.connections) {
  if (options.fence) fences_.emplace(options, std::min(options.connections, mostFenceSessions), environment);
}

void GetLockDriver::Impl::checkTtl(milliseconds ttl) {
  if (ttl >= leastTtl) return;
  throw std::invalid_argument("the ttl is " + formatDuration(ttl) + ": mysql+getlock keeps at least " +
                              formatDuration(leastTtl) + ", because the server counts whole seconds");
}

AcquireResult GetLockDriver::Impl::acquire(const AcquireRequest& request) {
  checkTtl(request.ttl);
  const std::string name = lockName(request.claim.key);
  for (;;) {
    auto place = sessions_.forClaim(name, request.claim.token, idleTimeout(request.ttl), request.deadline);
    if (const Busy* busy = std::get_if<Busy>(&place)) return *busy;
    Use& use = std::get<Use>(place);
    if (!readPendingReply(use, request.deadline)) continue;
    AcquireResult result = Busy{};
    if (sessions_.holds(*use, name, request.claim.token)) {
      result = regrant(use, name, request, request.deadline);
    } else {
      sessions_.prepare(*use, idleTimeout(request.ttl));
      // Where nobody else's locks are, a commit that stalls holds up none of them.
      if (fences_ && sessions_.names(*use).empty()) {
        statements::addFencedClaim(use->batch, request.claim, request.resend, fenceCount(request),
                                   use->server->id());
      } else {
        statements::addClaim(use->batch, name, seconds{0});
      }
      const Instant sentAt = now();
      result = outcome(use, exchange(use, request.deadline), name, request, sentAt);
    }
    const auto* granted = std::get_if<Granted>(&result);
    return granted ? withFence(std::move(use), name, request, *granted, request.deadline) : result;
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
  if (reply->error != 0 && reply->answered == 0 && !isInterrupted(reply->error)) {
    throwLockFault(*reply, claim.key, sessions_.names(*use), display());
  }
  if (reply->error != 0) failGranted(use, *reply, name, claim.token);
  checkAnswer(use, *reply);
  const auto got = reply->number(2);
  if (!got) throw StoreUnavailable(display() + ": the server broke off the claim");
  if (*got != 1) return Busy{};
  const std::optional<Fence> fence = reply->number(3);
  sessions_.add({name, claim.token, std::string(claim.owner), fence, end, &*use, use->server->id()});
  return Granted{sentAt, request.ttl, fence, fence ? fenceCount(request) : 1};
}

Granted GetLockDriver::Impl::regrant(Use& use, const std::string& name, const AcquireRequest& request,
                                     Instant deadline) {
  const Token& token = request.claim.token;
  const Instant sentAt = now();
  const auto held = sessions_.heldUnder(name);
  if (!sessions_.extend(*use, name, token, sentAt + request.ttl)) lose(use, "the lock is lost");
  sessions_.prepare(*use, idleTimeout(request.ttl));
  const bool draws = fences_ && !held->fence && sessions_.names(*use).size() == 1;
  if (draws) {
    statements::addFence(use->batch, request.claim, request.resend, fenceCount(request), use->server->id());
  } else {
    statements::addTouch(use->batch, use->server->inGroup());
  }
  const Reply* const reply = exchange(use, deadline);
  if (reply == nullptr) throw OutcomeUnknown(display() + ": no reply by the deadline");
  if (reply->error != 0) failGranted(use, *reply, name, token);
  checkAnswer(use, *reply);
  const std::optional<Fence> fence = reply->number(3);
  if (fence && !sessions_.setFence(name, token, use->server->id(), *fence)) lose(use, "the lock is lost");
  return {sentAt, request.ttl, fence, fence ? fenceCount(request) : 1};
}

Granted GetLockDriver::Impl::withFence(Use use, const std::string& name, const AcquireRequest& request,
                                       Granted granted, Instant deadline) {
  if (!fences_) return granted;
  const Claim& claim = request.claim;
  if (granted.fence) return granted;
  if (const auto held = sessions_.heldUnder(name); held && held->token == claim.token)
    granted.fence = held->fence;
  if (granted.fence) return granted;
  const std::uint64_t session = use->server->id();
  const std::string server = use->server->server();
  { const Use others = std::move(use); }  // Who share the session need not wait for the commit.
  try {
    const auto [fence, from] = fences_->next(claim, request.resend, fenceCount(request), session, deadline);
    // That one has just committed: ours is the former primary, and does not know it yet.
    if (from != server) {
      retireHolderOf(name, claim.token);
      throw NotPrimary(display() + ": the lock is with another server than its fence");
    }
    granted.fence = fence;
    granted.localHolders = fenceCount(request);
  } catch (const OutcomeUnknown& unknown) {
    freeName(name, claim.token);
    // Of the fence, which nobody gets then: the claim itself certainly holds nothing.
    throw StoreUnavailable(unknown.what());
  } catch (const Error&) {
    freeName(name, claim.token);
    throw;
  }
  // Whoever used the session meanwhile has told of the loss of its locks; nobody listened for this one yet.
  if (!sessions_.setFence(name, claim.token, session, *granted.fence)) {
    throw OutcomeUnknown(display() + ": the lock was lost while its fence was drawn");
  }
  return granted;
}

ReleaseOutcome GetLockDriver::Impl::release(const Claim& claim, Instant deadline) {
  const std::string name = lockName(claim.key);
  auto use = sessions_.holding(name, claim.token, deadline);
  if (!use || !readPendingReply(*use, deadline)) return ReleaseOutcome::notOwner;
  LockSession& session = **use;
  sessions_.prepare(session, seconds{0});
  // A lease that has ended is freed by the preamble, but was not the claim's any more.
  const bool owner = sessions_.holds(session, name, claim.token);
  if (owner) {
    statements::addRelease(session.batch, name);
  } else {
    statements::addTouch(session.batch, session.server->inGroup());
  }
  const Reply* reply = nullptr;
  try {
    reply = exchange(*use, deadline);
  } catch (const NotPrimary&) {
    return ReleaseOutcome::notOwner;  // The lock has ended with its session.
  }
  if (!owner) return ReleaseOutcome::notOwner;
  if (reply != nullptr && reply->error != 0) fail(*reply);
  sessions_.remove(session, name, claim.token);
  if (reply == nullptr) throw OutcomeUnknown(display() + ": no reply to the release by its deadline");
  try {
    checkAnswer(*use, *reply);
  } catch (const Error&) {
    return ReleaseOutcome::notOwner;
  }
  if (reply->number(2) == 1) return ReleaseOutcome::released;
  use->close();
  return ReleaseOutcome::notOwner;
}

std::optional<Holder> GetLockDriver::Impl::holder(std::string_view key, Instant deadline) {
  const std::string name = lockName(key);
  for (int looks = 0;;) {
    Use use = sessions_.forQuery(name, deadline);
    if (!readPendingReply(use, deadline)) continue;
    sessions_.prepare(*use, seconds{0});
    statements::addHolderQuery(use->batch, name, fences_.has_value(), looks > 0);
    try {
      const Reply* const reply = exchange(use, deadline);
      if (reply == nullptr) throw StoreUnavailable(display() + ": no reply by the deadline");
      if (reply->error != 0) fail(*reply);
      checkAnswer(use, *reply);
      std::optional<Holder> found = holderIn(*reply, name);
      // A claim that is just being granted has the lock before it has written its label.
      const bool named = !found || !fences_ || found->fence;
      if (named || ++looks == queriesForALabel) return found;
    } catch (const OutcomeUnknown& lost) {
      // The server ends sessions whose leases have ended, perhaps this very moment: another one may ask. It
      // is only a question.
      if (now() >= deadline) throw StoreUnavailable(lost.what());
    }
  }
}

std::optional<Holder> GetLockDriver::Impl::holderIn(const Reply& reply, const std::string& name) {
  const auto session = reply.number(2);
  if (!session) return std::nullopt;
  Holder holder;
  if (fences_ && reply.number(4) == session) {
    holder.fence = reply.number(3);
    holder.owner = reply.text(5);
  }
  if (const auto ours = sessions_.heldUnder(name); ours && ours->sessionId == *session) {
    holder.owner = ours->owner;
    holder.remaining = std::max(std::chrono::ceil<milliseconds>(ours->end - now()), milliseconds{0});
  }
  return holder;
}

Promises GetLockDriver::Impl::promises() const {
  const std::string locks = "locks end with the server, and with its connection to their holder";
  if (!fences_) return {FencePromise::none, locks};
  return {opener_.fencePromise(), locks + "; fences: " + opener_.durability()};
}

bool GetLockDriver::Impl::readPendingReply(Use& use, Instant deadline) {
  LockSession& session = *use;
  if (!session.replyDue) return true;
  if (!session.server->await(deadline)) {
    throw StoreUnavailable(display() + ": the session still waits for an answer of the server");
  }
  const Reply& reply = session.receive(now() + ioTimeout());
  const auto unseen = session.unseen;
  sessions_.setUnseen(session, std::nullopt);
  if (reply.lost()) {
    use.close();
    return false;
  }
  if (kindOf(reply.error) == FaultKind::notPrimary) {
    retire(use);
    return false;
  }
  if (!unseen) return true;
  if (reply.error == 0 && reply.number(2) == 1) {
    // Its lease counts as ended: the claim itself may still take it up, everything else frees it.
    sessions_.add(
        {unseen->name, unseen->token, unseen->owner, reply.number(3), now(), &session, session.server->id()});
  } else if (reply.error != 0 && (reply.answered > 0 || isInterrupted(reply.error))) {
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
  const Instant sentAt = now();
  if (sentAt >= deadline) throw StoreUnavailable(display() + ": the deadline has passed; nothing was sent");
  if (!use->send(sentAt, sentAt + ioTimeout())) lose(use, "the connection is lost");
}

const Reply& GetLockDriver::Impl::receive(Use& use) {
  const Reply& reply = use->receive(now() + ioTimeout());
  if (reply.lost()) lose(use, reply.reason);
  if (kindOf(reply.error) == FaultKind::notPrimary) {
    const Reply fault = reply;
    retire(use);
    fail(fault);
  }
  return reply;
}

void GetLockDriver::Impl::failGranted(Use& use, const Reply& reply, const std::string& name,
                                      const Token& token) {
  const Reply fault = reply;
  freeName(use, name, token);
  fail(fault);
}

void GetLockDriver::Impl::freeName(Use& use, const std::string& name, const Token& token) {
  sessions_.remove(*use, name, token);
  use->toFree.push_back(name);
  sessions_.prepare(*use, seconds{0});
  statements::addTouch(use->batch, use->server->inGroup());
  static_cast<void>(exchange(use, now() + ioTimeout()));
}

void GetLockDriver::Impl::freeName(const std::string& name, const Token& token) {
  const Instant end = now() + ioTimeout();
  try {
    auto use = sessions_.holding(name, token, end);
    if (use && readPendingReply(*use, end)) freeName(*use, name, token);
  } catch (const Error&) {
    // The session has other things to do: its next batch frees the name, as one whose lease has ended.
    sessions_.endLease(name, token);
  }
}

void GetLockDriver::Impl::lose(Use& use, const std::string& why) {
  const std::string message = display() + ": " + why + "; its locks end with the session";
  use.close();
  throw OutcomeUnknown(message);
}

void GetLockDriver::Impl::retire(Use& use) {
  sessions_.retire(*use->server);
  use.close();
}

void GetLockDriver::Impl::retireHolderOf(const std::string& name, const Token& token) {
  const Instant end = now() + ioTimeout();
  try {
    if (auto use = sessions_.holding(name, token, end)) retire(*use);
  } catch (const Error&) {
    sessions_.endLease(name, token);
  }
}

void GetLockDriver::Impl::checkAnswer(Use& use, const Reply& reply) {
  if (use->retired) lose(use, "another server has become the primary");
  if (reply.number(0) != use->server->id()) lose(use, "another session answered, or none");
  if (!isReadOnly(reply.text(1))) return;
  retire(use);
  throw NotPrimary(display() + " has become read-only, as a replica is; its locks mean nothing any more");
}

}  // namespace lockkeeper::mysql
