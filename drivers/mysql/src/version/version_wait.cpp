// Claims that wait for their key.

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>
#include <variant>

#include "session/reply_fault.h"
#include "version/version_impl.h"

namespace lockkeeper::mysql {
namespace {

// The first in a queue looks whether the key has changed hands: soon after it has come to be the first, since
// most keys are held for a short time.
constexpr std::chrono::milliseconds shortestPause{2};
constexpr std::chrono::milliseconds longestPause{50};
// It has to write its mark long before that ends, and at least so often.
constexpr std::chrono::milliseconds markEvery{400};
static_assert(2 * markEvery < priority && priority - markEvery < newMark);
// Somebody may keep the row from others for a moment. After so many failures in a row, the caller hears of
// it.
constexpr int mostContentions = 3;
// A claim beside the queue is answered by then, also where the server first waits for the row itself. A claim
// that is given up earlier is in doubt.
constexpr std::chrono::milliseconds longestClaim{2500};

}  // namespace

AcquireResult VersionDriver::Impl::acquireWaiting(const AcquireRequest& request,
                                                  std::chrono::nanoseconds waitFor,
                                                  const std::stop_token& stop) {
  using enum LockTexts::Standing;
  const Instant until = saturatingAdd(clock().now(), waitFor);
  // Most keys that others have waited for lately are free by now.
  AcquireResult result = acquire(request, request.ahead ? upgrade : newcomer);
  if (std::holds_alternative<Granted>(result) || stop.stop_requested() || clock().now() >= until) {
    return result;
  }
  const auto standing = request.ahead ? waitingUpgrade : first;
  std::optional<SessionPool::Use> session;
  try {
    session.emplace(waiting_, request.deadline, clock().now());
    givenUp_.end(*session, request.deadline);
  } catch (const StoreUnavailable&) {
    return acquire(request, standing);
  }
  const WakeUp wakeUp(stop);
  QueuePlace place(
      *session, cancelling_, queueName(opener_.options().database, texts_.table, request.claim.key),
      opener_.options().ioTimeout, opener_.options().hosts.size() > 1 || session->session().inGroup());
  // If those in front stand still, they ask for nothing, and nobody keeps the key for them.
  std::exception_ptr failure;
  const auto getsPast = [&] {
    try {
      result = acquireIfFree(request, *session, wakeUp);
      return std::holds_alternative<Granted>(result);
    } catch (const StoreUnavailable&) {
      return false;  // It asks again.
    } catch (...) {
      failure = std::current_exception();
      return true;
    }
  };
  if (!request.ahead && !place.enter(request.deadline, until, stop, wakeUp, getsPast)) {
    if (failure) std::rethrow_exception(failure);
    return std::holds_alternative<Granted>(result) ? result : Busy{};
  }
  const auto leave = [&] {
    place.leave();
    session->keep();
  };
  try {
    result = askUntilGranted(*session, place, request, standing, until, stop, wakeUp);
    leave();
    return result;
  } catch (const Contention&) {
    leave();  // The server answers.
    throw;
  } catch (const ConfigError&) {
    leave();
    throw;
  } catch (const OutcomeUnknown&) {
    givenUp_.add(*session);
    throw;
  }
}

// Reads rather than claims: a claim keeps the row from others, and with its mark it is a commit.
AcquireResult VersionDriver::Impl::askUntilGranted(SessionPool::Use& session, const QueuePlace& place,
                                                   AcquireRequest request, LockTexts::Standing standing,
                                                   Instant until, const std::stop_token& stop,
                                                   const WakeUp& wakeUp) {
  const std::string_view key = request.claim.key;
  std::string seen;
  Instant askAgain = Instant::min();
  std::exception_ptr contention;  // what the last attempt came to
  int contentions = 0;            // in a row
  for (auto pause = shortestPause;; pause = std::min(2 * pause, longestPause)) {
    place.checkServer();
    const Instant deadline = clock().now() + opener_.options().ioTimeout;
    Tables tables{{session, texts_, deadline}, {session, texts_, deadline}};
    const auto unmark = [&] {
      try {
        tables.locks.unmark(key, standing);
      } catch (const Error&) {
        session.close();  // The mark ends by itself.
      }
    };
    std::string present = tables.locks.stateOf(key);
    if (present != seen || clock().now() >= askAgain) {
      seen = std::move(present);
      std::chrono::milliseconds wait = markEvery;
      try {
        const AcquireResult result = acquire(tables, request, standing);
        const auto* const busy = std::get_if<Busy>(&result);
        if (busy == nullptr) return result;
        contention = nullptr;
        contentions = 0;
        wait = std::clamp(busy->retryAfter.value_or(markEvery), shortestPause, markEvery);
        request.resend = false;
      } catch (const Contention&) {
        if (++contentions == mostContentions) throw;
        contention = std::current_exception();
      } catch (const ConfigError&) {
        unmark();
        throw;
      }
      askAgain = clock().now() + wait;
    }
    if (clock().now() >= until || stop.stop_requested()) {
      if (contention) std::rethrow_exception(contention);
      unmark();
      return Busy{};
    }
    session.session().await(std::min({until, askAgain, clock().now() + pause}), wakeUp.file());
  }
}

// Whoever is the first asks at least every `longestPause` if it is alive: so it gets the key before this
// does.
AcquireResult VersionDriver::Impl::acquireIfFree(AcquireRequest request, SessionPool::Use& waiting,
                                                 const WakeUp& wakeUp) {
  const Instant now = clock().now();
  request.deadline = now + std::min(opener_.options().ioTimeout, longestClaim);
  request.resend = false;
  const auto state = [&](Tables& tables) { return tables.locks.stateOf(request.claim.key); };
  // Only by a session that is free: the own turn may come while one is waited for.
  const std::string before = onTables(request.deadline, state, now);
  if (!before.starts_with('/')) return Busy{};
  if (waiting.session().await(clock().now() + 2 * longestPause, wakeUp.file())) return Busy{};
  const auto claim = [&](Tables& tables) -> AcquireResult {
    if (state(tables) != before) return Busy{};
    return acquire(tables, request, LockTexts::Standing::newcomer);
  };
  return onTables(request.deadline, claim, clock().now());
}

}  // namespace lockkeeper::mysql
