// Claims that wait in the server's queue, each on a session of its own.

#include <algorithm>
#include <optional>
#include <utility>

#include "getlock/getlock_impl.h"
#include "getlock/session/getlock_statements.h"
#include "lockkeeper/error.h"
#include "session/lock_name.h"
#include "session/wake_up.h"

namespace lockkeeper::mysql {
namespace {

using std::chrono::seconds;

// How long a claim may stand in the queue of a server that another one has replaced, if nobody else of the
// driver finds out, and how long a stop that has no file to wake it up with may not be seen.
constexpr seconds lookEvery{5};

// The server rounds: it must not give up before we do.
seconds serverWait(std::chrono::nanoseconds length) {
  return std::chrono::ceil<seconds>(std::max(length, std::chrono::nanoseconds{0})) + seconds{1};
}

// How long a claim stands in the queue at a time. The server grants the name to claims of processes that
// stand still, too, and each keeps it for `idleTimeout`. But those whose time in the queue is over are passed
// by, so that all of them together keep a name that is free for two ttl, and not for one idleTimeout each. A
// claim that has waited for longer stands there for as long again, because others may stand in front of it
// for more than two ttl, and each time it would be behind new ones.
seconds timeInQueue(std::chrono::milliseconds ttl, seconds idleTimeout, Instant::duration waited) {
  return std::max({std::chrono::floor<seconds>(2 * ttl) - idleTimeout - seconds{1},
                   std::chrono::floor<seconds>(waited), seconds{1}});
}

}  // namespace

AcquireResult GetLockDriver::Impl::acquireWaiting(const AcquireRequest& request,
                                                  std::chrono::nanoseconds waitFor, std::stop_token stop) {
  checkTtl(request.ttl);
  const Instant began = now();
  const Instant waitUntil = saturatingAdd(began, waitFor);
  if (stop.stop_requested() || now() >= waitUntil) return Busy{};

  // As long as it takes to take up a grant, not the ttl: a host that vanishes while its claim waits is
  // granted in its turn, and must not keep the name for that long.
  const seconds idleTimeout = std::chrono::ceil<seconds>(std::min(request.ttl, ioTimeout()));
  auto use = sessions_.forWaiting(idleTimeout, request.deadline);
  if (!use || !readPendingReply(*use, request.deadline)) return Busy{};
  for (;;) {
    const seconds longest =
        std::min(serverWait(waitUntil - now()), timeInQueue(request.ttl, idleTimeout, now() - began));
    const auto result = waitInQueue(*use, request, longest, waitUntil, stop, idleTimeout);
    if (result) return *result;
  }
}

std::optional<AcquireResult> GetLockDriver::Impl::waitInQueue(Use& use, const AcquireRequest& request,
                                                              seconds longest, Instant waitUntil,
                                                              const std::stop_token& stop,
                                                              seconds idleTimeout) {
  const std::string name = lockName(request.claim.key);
  sessions_.prepare(*use, idleTimeout);
  if (!use->batch.empty()) {  // Its preamble would be answered before the wait begins.
    statements::addTouch(use->batch, use->server->inGroup());
    if (exchange(use, request.deadline) == nullptr) return Busy{};
    sessions_.prepare(*use, idleTimeout);
  }
  statements::addClaim(use->batch, name, longest);

  const Instant sentAt = now();
  send(use, Instant::max());
  bool cancelled = false;
  if (!awaitTurn(use, waitUntil, stop, idleTimeout)) {
    cancelled = true;
    if (!cancel(use)) {
      // The server has more to do than to answer. Without its session the claim is none.
      use.close();
      return Busy{};
    }
  }
  try {
    const AcquireResult result = outcome(use, &receive(use), name, request, sentAt);
    if (std::holds_alternative<Busy>(result)) {
      const bool over = cancelled || stop.stop_requested() || now() >= waitUntil;
      return over ? std::optional(result) : std::nullopt;
    }
    // The wait must not eat the lease, and only the server knows when it ended; nor does the answer say what
    // the server has become meanwhile.
    const Instant end = now() + ioTimeout();
    const Granted granted = regrant(use, name, request, end);
    return withFence(std::move(use), name, request, granted, end);
  } catch (const StoreUnavailable&) {
    if (cancelled) return Busy{};
    throw;
  }
}

bool GetLockDriver::Impl::awaitTurn(Use& use, Instant until, const std::stop_token& stop,
                                    seconds idleTimeout) {
  const bool replaceable = opener_.options().hosts.size() > 1 || use->server->inGroup();
  const WakeUp wakeUp(stop);
  for (;;) {
    const Instant next = std::min(until, now() + lookEvery);
    if (use->server->await(next, wakeUp.file())) return true;
    if (next == until || stop.stop_requested()) return false;
    // A grant must not stay unseen for as long as its session may be silent.
    if (replaceable) lookAfterServer(std::min(until, now() + std::chrono::milliseconds(idleTimeout) / 2));
  }
}

// Whichever session asks, what it hears closes the waiting one when its server is not the primary any more;
// one that hangs is passed over by the next look, which opens another and so finds the primary.
void GetLockDriver::Impl::lookAfterServer(Instant end) {
  try {
    Use other = sessions_.forQuery("", end);
    if (!readPendingReply(other, end)) return;
    sessions_.prepare(*other, seconds{0});
    statements::addTouch(other->batch, other->server->inGroup());
    const Reply* const reply = exchange(other, end);
    if (reply != nullptr && reply->error == 0) checkAnswer(other, *reply);
  } catch (const Error&) {
    // The claim waits on, unless its session was closed.
  }
}

bool GetLockDriver::Impl::cancel(Use& waiting) {
  const Instant end = now() + ioTimeout();
  try {
    Use other = sessions_.forQuery("", end);
    if (readPendingReply(other, end) && other->server->reaches(*waiting->server)) {
      sessions_.prepare(*other, seconds{0});
      other->batch += statements::cancel(waiting->server->id());
      static_cast<void>(exchange(other, end));
    }
  } catch (const Error&) {
  }
  return waiting->server->await(end);
}

}  // namespace lockkeeper::mysql
