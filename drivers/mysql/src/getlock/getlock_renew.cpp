// Renewals: one statement keeps all locks of a session, and those of all sessions are under way at once. Each
// session's outcomes are told as soon as its reply is there.

#include <algorithm>
#include <map>
#include <vector>

#include "getlock/getlock_impl.h"
#include "getlock/session/getlock_statements.h"
#include "lockkeeper/error.h"
#include "session/lock_name.h"
#include "session/reply_fault.h"
#include "session/wake_up.h"

namespace lockkeeper::mysql {
namespace {

// How long a session that has come back may stay unseen where no file is left that tells of it.
constexpr std::chrono::milliseconds returnedWithin{50};

}  // namespace

struct GetLockDriver::Impl::Heartbeat {
  struct Entry {
    Renewal* renewal;
    std::string name;
  };
  std::vector<Entry> entries{};
  std::chrono::seconds idleTimeout{0};
  std::optional<Use> use{};  ///< While its reply is due.
  Instant sentAt{};

  void all(RenewOutcome outcome, std::string_view cause = {}) {
    for (const Entry& entry : entries) {
      entry.renewal->outcome = outcome;
      entry.renewal->cause = cause;
    }
  }

  void report() const {
    for (const Entry& entry : entries) {
      if (entry.renewal->told) entry.renewal->told(*entry.renewal);
    }
  }
};

void GetLockDriver::Impl::renew(std::span<Renewal> renewals, Instant deadline) {
  std::map<LockSession*, Heartbeat> beats;
  for (Renewal& each : renewals) {
    each.outcome = RenewOutcome::notOwner;
    std::string name = lockName(each.claim.key);
    const auto held = sessions_.heldUnder(name);
    if (!held || held->token != each.claim.token || held->end <= now()) continue;
    each.outcome = RenewOutcome::unavailable;
    Heartbeat& beat = beats[held->session];
    beat.idleTimeout = std::max(beat.idleTimeout, std::chrono::ceil<std::chrono::seconds>(each.ttl));
    beat.entries.push_back({&each, std::move(name)});
  }
  std::vector<LockSession*> wanted;
  for (auto& [session, beat] : beats) {
    beat.all(RenewOutcome::unavailable, display() + ": the session had no time left to renew it");
    wanted.push_back(session);
  }
  // Whatever comes first, a session that is free or a reply: one that hangs, or that somebody else uses,
  // holds up no other.
  std::vector<Heartbeat*> sent;
  for (;;) {
    // From before the look at which are free, so that none comes back unseen.
    const WakeUp returned(wanted.empty() ? std::stop_token() : sessions_.nextReturn());
    while (auto taken = sessions_.takeAny(wanted)) {
      std::erase(wanted, taken->first);
      Heartbeat& beat = beats.at(taken->first);
      if (taken->second) beat.use.emplace(std::move(*taken->second));
      attempt(beat, [&] { send(beat, deadline); });
      if (beat.use) {
        sent.push_back(&beat);
      } else {
        beat.report();
      }
    }
    if (sent.empty() && (wanted.empty() || now() >= deadline)) return;
    // A session that comes back ends the wait.
    const Instant look = wanted.empty() || returned.file() >= 0 ? deadline : now() + returnedWithin;
    awaitAny(sent, std::min(deadline, look), returned.file());
    std::erase_if(sent, [&](Heartbeat* beat) {
      if (now() < deadline && !(*beat->use)->server->readable()) return false;
      attempt(*beat, [&] { collect(*beat, deadline); });
      beat->use.reset();
      beat->report();
      return true;
    });
  }
}

template <class Step>
void GetLockDriver::Impl::attempt(Heartbeat& beat, Step step) {
  try {
    return step();
  } catch (const OutcomeUnknown&) {
    beat.all(RenewOutcome::notOwner);  // The session is lost, and with it the locks.
  } catch (const NotPrimary&) {
    beat.all(RenewOutcome::notOwner);
  } catch (const Error& error) {
    beat.all(RenewOutcome::unavailable, error.what());
  }
  beat.use.reset();
}

void GetLockDriver::Impl::send(Heartbeat& beat, Instant deadline) {
  if (!beat.use) return beat.all(RenewOutcome::notOwner);
  LockSession& session = **beat.use;
  if (session.replyDue && !session.server->readable()) return beat.use.reset();
  if (!readPendingReply(*beat.use, deadline)) {
    beat.all(RenewOutcome::notOwner);
    return beat.use.reset();
  }
  sessions_.prepare(session, beat.idleTimeout);
  statements::addTouch(session.batch, session.server->inGroup());
  beat.sentAt = now();
  send(*beat.use, deadline);
}

void GetLockDriver::Impl::awaitAny(std::span<Heartbeat* const> sent, Instant deadline, int wakeUp) {
  std::vector<const ServerSession*> sessions;
  for (const Heartbeat* each : sent) sessions.push_back((*each->use)->server.get());
  ServerSession::awaitAny(sessions, opener_.clock(), deadline, wakeUp);
}

void GetLockDriver::Impl::collect(Heartbeat& beat, Instant deadline) {
  Use& use = *beat.use;
  if (!use->server->await(deadline)) {
    return beat.all(RenewOutcome::unknown, display() + ": the server did not answer in time");
  }
  const Reply& reply = receive(use);
  if (reply.error != 0) return beat.all(RenewOutcome::unavailable, display() + ": " + reply.reason);
  checkAnswer(use, reply);
  for (const auto& [renewal, name] : beat.entries) {
    const bool ours = sessions_.extend(*use, name, renewal->claim.token, beat.sentAt + renewal->ttl);
    renewal->outcome = ours ? RenewOutcome::renewed : RenewOutcome::notOwner;
    renewal->leasedFrom = beat.sentAt;
    renewal->leasedFor = renewal->ttl;
  }
}

}  // namespace lockkeeper::mysql
