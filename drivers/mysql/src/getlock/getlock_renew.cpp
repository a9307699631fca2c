// Renewals: one statement keeps all locks of a session, and those of all sessions are under way at once.

#include <algorithm>
#include <map>
#include <vector>

#include "getlock/getlock_impl.h"
#include "getlock/getlock_statements.h"
#include "getlock/lock_name.h"
#include "lockkeeper/error.h"

namespace lockkeeper::mysql {

struct GetLockDriver::Impl::Heartbeat {
  struct Entry {
    Renewal* renewal;
    std::string name;
  };
  std::vector<Entry> entries{};
  std::chrono::seconds idleTimeout{0};
  std::optional<Use> use{};
  Instant sentAt{};
  bool sent = false;

  void all(RenewOutcome outcome, std::string_view cause = {}) {
    for (const Entry& entry : entries) {
      entry.renewal->outcome = outcome;
      entry.renewal->cause = cause;
    }
  }
};

void GetLockDriver::Impl::renew(std::span<Renewal> renewals, Instant deadline) {
  // By address, so that two calls that need the same sessions take them in the same order.
  std::map<LockSession*, Heartbeat> beats;
  for (Renewal& each : renewals) {
    each.outcome = RenewOutcome::notOwner;
    std::string name = lockName(each.claim.key);
    const auto held = sessions_.look(name);
    if (!held || held->token != each.claim.token || held->end <= now()) continue;
    Heartbeat& beat = beats[held->session];
    beat.idleTimeout = std::max(beat.idleTimeout, std::chrono::ceil<std::chrono::seconds>(each.ttl));
    beat.entries.push_back({&each, std::move(name)});
  }
  for (auto& [session, beat] : beats) {
    try {
      auto use = sessions_.take(session, deadline);
      if (!use) continue;
      beat.use.emplace(std::move(*use));
      beat.all(RenewOutcome::unavailable, "the session had no time left to renew it");
      if (!session->replyDue) send(beat, deadline);
    } catch (const OutcomeUnknown&) {
      beat.all(RenewOutcome::notOwner);  // The session is lost, and with it the locks.
    } catch (const Error& error) {
      beat.all(RenewOutcome::unavailable, error.what());
    }
  }
  // A session whose connection hangs holds up no other: their replies are there by now.
  for (auto& [session, beat] : beats) {
    if (beat.use) collect(beat, deadline);
  }
}

void GetLockDriver::Impl::send(Heartbeat& beat, Instant deadline) {
  sessions_.prepare(**beat.use, beat.idleTimeout);
  statements::addTouch((*beat.use)->batch);
  beat.sentAt = now();
  send(*beat.use, deadline);
  beat.sent = true;
}

void GetLockDriver::Impl::collect(Heartbeat& beat, Instant deadline) {
  Use& use = *beat.use;
  try {
    if (!beat.sent && !settle(use, deadline)) return beat.all(RenewOutcome::notOwner);
    if (!beat.sent) send(beat, deadline);
    if (!use->server->await(deadline)) {
      return beat.all(RenewOutcome::unknown, display() + ": the server did not answer in time");
    }
    const Reply& reply = receive(use);
    if (reply.error != 0) return beat.all(RenewOutcome::unavailable, display() + ": " + reply.reason);
    if (!sameSession(*use, reply, 0)) lose(use, "another session answered");
    for (const auto& [renewal, name] : beat.entries) {
      const bool ours = sessions_.extend(*use, name, renewal->claim.token, beat.sentAt + renewal->ttl);
      renewal->outcome = ours ? RenewOutcome::renewed : RenewOutcome::notOwner;
      renewal->leasedFrom = beat.sentAt;
      renewal->leasedFor = renewal->ttl;
    }
  } catch (const OutcomeUnknown&) {
    beat.all(RenewOutcome::notOwner);
  } catch (const Error& error) {
    beat.all(RenewOutcome::unavailable, error.what());
  }
}

}  // namespace lockkeeper::mysql
