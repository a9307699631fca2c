// Claims that wait in the server's queue, each on a session of its own.

#include <algorithm>
#include <utility>

#include "getlock/getlock_impl.h"
#include "getlock/session/getlock_statements.h"
#include "getlock/session/lock_name.h"
#include "getlock/session/wake_up.h"
#include "lockkeeper/error.h"

namespace lockkeeper::mysql {
namespace {

using std::chrono::seconds;

// The server rounds: it must not give up before we do.
seconds serverWait(std::chrono::nanoseconds length) {
  return std::chrono::ceil<seconds>(std::max(length, std::chrono::nanoseconds{0})) + seconds{1};
}

}  // namespace

AcquireResult GetLockDriver::Impl::acquireWaiting(const AcquireRequest& request,
                                                  std::chrono::nanoseconds waitFor, std::stop_token stop) {
  const Instant waitUntil = saturatingAdd(now(), waitFor);
  if (stop.stop_requested() || now() >= waitUntil) return Busy{};

  // As long as it takes to take up a grant, not the ttl: a host that vanishes while its claim waits is
  // granted in its turn, and must not keep the name for that long.
  const seconds idleTimeout = std::chrono::ceil<seconds>(std::min(request.ttl, ioTimeout()));
  auto use = sessions_.forWaiting(idleTimeout, request.deadline);
  if (!use || !readPendingReply(*use, request.deadline)) return Busy{};
  const std::string name = lockName(request.claim.key);
  sessions_.prepare(**use, idleTimeout);
  if (!(*use)->batch.empty()) {  // Its preamble would be answered before the wait begins.
    statements::addTouch((*use)->batch);
    if (exchange(*use, request.deadline) == nullptr) return Busy{};
    sessions_.prepare(**use, idleTimeout);
  }
  statements::addWait((*use)->batch, name, serverWait(waitUntil - now()));

  const WakeUp wakeUp(stop);
  const Instant sentAt = now();
  send(*use, Instant::max());
  bool cancelled = false;
  if (!(*use)->server->await(waitUntil, wakeUp.file())) {
    cancelled = true;
    if (!cancel(*use)) {
      // The server has more to do than to answer. Without its session the claim is none.
      use->close();
      return Busy{};
    }
  }
  try {
    const AcquireResult result = outcome(*use, &receive(*use), name, request, sentAt);
    if (std::holds_alternative<Busy>(result)) return result;
  } catch (const StoreUnavailable&) {
    if (cancelled) return Busy{};
    throw;
  }
  // The wait must not eat the lease, and when it ended only the server knows.
  const Instant end = now() + ioTimeout();
  const Granted granted = regrant(*use, name, request, end);
  return withFence(std::move(*use), name, request, granted, end);
}

bool GetLockDriver::Impl::cancel(Use& waiting) {
  const Instant end = now() + ioTimeout();
  try {
    Use other = sessions_.forLooking("", end);
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
