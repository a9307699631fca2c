#include "redlock/redlock_impl.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lock/lock_value.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "redlock/round_report.h"
#include "wire/protocol/script.h"
#include "wire/protocol/server_error.h"

namespace lockkeeper::redis {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds leastPatience{50};
constexpr milliseconds fixedDrift{2};
constexpr std::uint32_t coreDrift = 1;  // percent: what core takes off by itself

}  // namespace

RedlockDriver::Impl::Impl(RedlockOptions given, Environment world, std::shared_ptr<FenceSource> source)
    : options((given.check(), std::move(given))),
      environment(std::move(world)),
      store(options.display()),
      fences(std::move(source)),
      group(options, environment) {
  if (group.size() % 2 == 0) {
    environment.tell({.kind = EventKind::noted,
                      .store = store,
                      .text = "an even number of nodes: the last one makes the quorum larger and "
                              "survives no more failures"});
  }
  if (!options.restartGuard) {
    environment.tell({.kind = EventKind::noted,
                      .store = store,
                      .text = "restartGuard is off: a node that restarts and has forgotten its "
                              "votes may let a second holder in"});
  }
}

nanoseconds RedlockDriver::Impl::patience(milliseconds ttl) const {
  return options.nodeTimeout.value_or(std::max(ttl / 20, leastPatience));
}

void RedlockDriver::Impl::ask(Round& round, nanoseconds patience, Instant deadline, const VoteOf& voteOf) {
  group.ask(round, patience, deadline);
  const Instant end = now();
  for (std::size_t index = 0; index < round.seats.size(); ++index) {
    if (!round.invited[index]) continue;
    const Round::Seat& seat = round.seats[index];
    const Vote vote = voteOf(seat);
    if (vote == Vote::nonsense) group.disconnect(index, "the server sent a reply of an unexpected form");
    if (const Reply* const error = errorIn(seat); error && isError(*error, "READONLY")) {
      group.disconnect(index, "the server is not the master any more");
    }
    const auto* const answer = seat.answer();
    const Instant answeredAt = answer != nullptr ? answer->answeredAt : end;
    environment.tell({.kind = EventKind::nodeAsked,
                      .store = group.store(index),
                      .began = round.startedAt,
                      .ended = answeredAt,
                      .node = outcomeOf(seat, vote)});
  }
}

void RedlockDriver::Impl::checkTtl(milliseconds ttl) const {
  if (!options.restartGuard || ttl <= *options.restartGuard) return;
  throw ConfigError("ttl is " + formatDuration(ttl) + ": " + store + " allows at most its restartGuard, " +
                    formatDuration(*options.restartGuard));
}

// Core takes its own drift off; what is asked for beyond that makes the lease begin earlier.
Instant RedlockDriver::Impl::leasedFrom(const Round& round, nanoseconds ttl) const {
  return round.sentAt - ttl * (options.drift - coreDrift) / 100;
}

Granted RedlockDriver::Impl::accept(const Round& round, const AcquireRequest& request) {
  const nanoseconds ttl = request.ttl;
  const Instant end = round.sentAt + ttl - ttl * options.drift / 100 - fixedDrift;
  const auto checkValidity = [&] {
    if (end - now() >= ttl * options.minValidity / 100) return;
    giveBack(round, request);
    throw StoreUnavailable(store + ": the grant came so late that less than " +
                           std::to_string(options.minValidity) + "% of its ttl was left; it was given back");
  };
  checkValidity();
  std::optional<Fence> fence;
  if (fences) {
    try {
      fence = fences->next(request.claim, request.resend, request.deadline);
    } catch (const Error& fault) {
      giveBack(round, request);
      const std::string text = store + ": no fence, so the grant was given back: " + fault.what();
      throwError(fault.code() == ErrorCode::config ? ErrorCode::config : ErrorCode::storeUnavailable, text);
    }
    checkValidity();
  }
  return {leasedFrom(round, ttl), request.ttl, fence};
}

// When so many of the others' leases have ended that, with the nodes that are free, there is a quorum.
Busy RedlockDriver::Impl::busy(const Round& round, std::size_t yes) const {
  std::vector<milliseconds> ends;
  for (const Round::Seat& seat : round.seats) {
    if (claimVote(seat) != Vote::no) continue;
    if (const auto remaining = busyFor(seat)) ends.push_back(*remaining);
  }
  const std::size_t missing = quorum() - yes;
  if (ends.size() < missing) return {};
  std::sort(ends.begin(), ends.end());
  return {ends[missing - 1]};
}

// On all nodes that may have granted it, in the order of their connections: so it ends also what has not been
// answered yet. Those that had the time to answer and did not are not waited for again.
void RedlockDriver::Impl::giveBack(const Round& round, const AcquireRequest& request) {
  Round back(group.size());
  Script::release().addTo(back.wire, Script::By::text, std::array{request.claim.key},
                          std::array<std::string_view, 1>{lockValue(request.claim)});
  back.mustArrive = true;
  back.needsQuorum = false;
  const bool early = isSettled(tally(round, claimVote), quorum());
  std::vector<bool> awaited(group.size());
  bool any = false;
  for (std::size_t index = 0; index < group.size(); ++index) {
    const Vote vote = claimVote(round.seats[index]);
    const bool open = round.seats[index].state == Round::State::unanswered;
    awaited[index] = vote == Vote::yes || (open && early);
    back.invited[index] = round.seats[index].state != Round::State::leftOut && vote != Vote::no;
    any = any || back.invited[index];
  }
  if (!any) return;
  back.settled = [&awaited](const Round& open) {
    for (std::size_t index = 0; index < awaited.size(); ++index) {
      if (awaited[index] && open.seats[index].open()) return false;
    }
    return true;
  };
  const auto length = std::min<nanoseconds>(patience(request.ttl), options.nodes.front().ioTimeout);
  ask(back, length, saturatingAdd(now(), length), [](const Round::Seat& seat) { return flagVote(seat); });
}

RenewOutcome RedlockDriver::Impl::renewed(const Round& round, std::size_t index) const {
  const Tally votes = tally(round, [&](const Round::Seat& seat) { return flagVote(seat, index); });
  if (votes.yes >= quorum()) return RenewOutcome::renewed;
  if (votes.no > group.size() - quorum()) return RenewOutcome::notOwner;
  return votes.yes + votes.open > 0 ? RenewOutcome::unknown : RenewOutcome::unavailable;
}

// A quorum has just confirmed the lease, so that nobody else can have one: a node that has lost the key (an
// operator's DEL, a jump of its clock), or never had it, may vote for it. Nothing waits for that. If a
// release comes in between, fewer nodes than a quorum keep the key, until its ttl.
void RedlockDriver::Impl::repair(const Round& round, std::span<const Renewal> renewals,
                                 std::span<const std::string> values) {
  for (std::size_t node = 0; node < group.size(); ++node) {
    if (!group.mayVote(node)) continue;
    Request again;
    for (std::size_t index = 0; index < renewals.size(); ++index) {
      const Renewal& each = renewals[index];
      if (each.outcome != RenewOutcome::renewed || flagVote(round.seats[node], index) != Vote::no) continue;
      again.add({"SET", each.claim.key, values[index], "NX", "PX", std::to_string(each.ttl.count())});
    }
    if (again.size() > 0) group.tell(node, again);
  }
}

}  // namespace lockkeeper::redis
