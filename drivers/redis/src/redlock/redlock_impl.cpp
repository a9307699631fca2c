#include "redlock/redlock_impl.h"

#include <algorithm>
#include <array>
#include <stdexcept>
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
constexpr const char* perhapsLater = ", perhaps not yet by all nodes";

// Or may still do so.
bool mayHaveGranted(const Answer& claim) {
  if (claim.complete()) return errorIn(claim) == nullptr && claimVote(claim) != Vote::no;
  return isLost(claim) || claim.state == Answer::State::late;
}

}  // namespace

RedlockDriver::Impl::Impl(RedlockOptions given, Environment world, std::shared_ptr<FenceSource> source)
    : options((given.check(), std::move(given))),
      environment(std::move(world)),
      store(options.display()),
      fences(std::move(source)),
      voters(options),
      nodes(options.nodes, environment, [this](std::size_t node, const ServerFacts& facts, Instant at) {
        return voters.admit(node, facts, at);
      }) {
  if (options.restartGuard) observations.emplace(nodes, voters, environment, *options.restartGuard);
  if (nodes.size() % 2 == 0) {
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
  round.rules.patience = patience;
  nodes.ask(round.request, round.rules, deadline);
  const Instant end = now();
  for (std::size_t index = 0; index < nodes.size(); ++index) {
    if (!round.rules.nodes.empty() && !round.rules.nodes[index]) continue;
    const Answer& answer = round.request.answers()[index];
    const Vote vote = voteOf(answer);
    if (vote == Vote::malformed) {
      nodes.disconnect(index, answer.connection, "the server sent a reply of an unexpected form");
    }
    environment.tell({.kind = EventKind::nodeAsked,
                      .store = nodes.store(index),
                      .began = round.request.startedAt(),
                      .ended = answer.complete() ? answer.receivedAt : end,
                      .node = outcomeOf(answer, vote)});
  }
}

void RedlockDriver::Impl::checkTtl(milliseconds ttl) const {
  if (!options.restartGuard || ttl <= *options.restartGuard) return;
  throw std::invalid_argument("ttl is " + formatDuration(ttl) + ": " + store +
                              " allows at most its restartGuard, " + formatDuration(*options.restartGuard));
}

// Core takes its own drift off; what is asked for beyond that makes the lease begin earlier.
Instant RedlockDriver::Impl::leasedFrom(const Request& round, nanoseconds ttl) const {
  return round.sentAt() - ttl * (options.drift - coreDrift) / 100;
}

Granted RedlockDriver::Impl::accept(const Request& round, const AcquireRequest& request) {
  const nanoseconds ttl = request.ttl;
  const Instant end = round.sentAt() + ttl - ttl * options.drift / 100 - fixedDrift;
  const auto giveBack = [&](ErrorCode code, const std::string& text) {
    if (!withdraw(round, request)) throw WithdrawalUnknown(text + perhapsLater);
    throwError(code, text);
  };
  const auto checkValidity = [&] {
    if (end - now() >= ttl * options.minValidity / 100) return;
    giveBack(ErrorCode::storeUnavailable, store + ": the grant came so late that less than " +
                                              std::to_string(options.minValidity) +
                                              "% of its ttl was left; it was given back");
  };
  checkValidity();
  std::optional<Fence> fence;
  if (fences) {
    try {
      fence = fences->next(request.claim, request.resend, request.deadline);
    } catch (const Error& fault) {
      giveBack(fault.code() == ErrorCode::config ? ErrorCode::config : ErrorCode::storeUnavailable,
               store + ": no fence, so the grant was given back: " + fault.what());
    }
    checkValidity();
  }
  return {leasedFrom(round, ttl), request.ttl, fence};
}

// When so many of the others' leases have ended that, with the nodes that are free, there is a quorum.
Busy RedlockDriver::Impl::busy(const Request& round, std::size_t yes) const {
  std::vector<milliseconds> ends;
  for (const Answer& answer : round.answers()) {
    if (claimVote(answer) != Vote::no) continue;
    if (const auto remaining = busyFor(answer)) ends.push_back(*remaining);
  }
  const std::size_t missing = quorum() - yes;
  if (ends.size() < missing) return {};
  std::sort(ends.begin(), ends.end());
  return {ends[missing - 1]};
}

// On all nodes that may have granted it, in the order of their connections: so it ends also what has not been
// answered yet. Those that had the time to answer and did not are not waited for again. On another
// connection, the release may come before the claim.
bool RedlockDriver::Impl::withdraw(const Request& round, const AcquireRequest& request) {
  Round back = this->round();
  Script::release().addTo(back.request, Script::By::text, std::array{request.claim.key},
                          std::array<std::string_view, 1>{lockValue(request.claim)});
  back.rules.mustArrive = true;
  back.rules.needed = 0;  // no connection is worth waiting for
  const bool early = isDecided(tally(round, claimVote), quorum());
  std::vector<bool> awaited(nodes.size());
  std::vector<bool>& asked = back.rules.nodes;
  for (const Answer& answer : round.answers()) {
    const Vote vote = claimVote(answer);
    awaited[asked.size()] = vote == Vote::yes || (answer.state == Answer::State::late && early);
    asked.push_back(answer.state != Answer::State::notAsked && vote != Vote::no);
  }
  if (std::find(asked.begin(), asked.end(), true) == asked.end()) return true;
  back.rules.enough = [&awaited](const Request& open) {
    for (std::size_t index = 0; index < awaited.size(); ++index) {
      if (awaited[index] && open.answers()[index].state == Answer::State::waiting) return false;
    }
    return true;
  };
  const auto length = std::min<nanoseconds>(patience(request.ttl), options.nodes.front().ioTimeout);
  ask(back, length, saturatingAdd(now(), length), [](const Answer& answer) { return flagVote(answer); });
  for (std::size_t index = 0; index < nodes.size(); ++index) {
    const Answer& claim = round.answers()[index];
    const bool refused = errorIn(back.request.answers()[index]) != nullptr;
    if (mayHaveGranted(claim) && (refused || !nodes.isConnected(index, claim.connection))) return false;
  }
  return true;
}

void RedlockDriver::Impl::renew(Round& round, std::span<Renewal> renewals,
                                std::span<const std::string> values, nanoseconds patience, Instant deadline) {
  for (std::size_t index = 0; index < renewals.size(); ++index) {
    Renewal& each = renewals[index];
    Script::renew().addTo(round.request, Script::By::text, std::array{each.claim.key},
                          std::array<std::string_view, 2>{values[index], std::to_string(each.ttl.count())});
    each.outcome = RenewOutcome::unavailable;
  }
  try {
    ask(round, patience, deadline, [&](const Answer& answer) {
      Vote vote = flagVote(answer);
      for (std::size_t index = 1; index < renewals.size() && vote != Vote::malformed; ++index) {
        if (flagVote(answer, index) == Vote::malformed) vote = Vote::malformed;
      }
      return vote;
    });
  } catch (const Error& error) {
    for (Renewal& each : renewals) each.cause = error.what();
    return;  // nothing was sent
  }
  for (std::size_t index = 0; index < renewals.size(); ++index) {
    Renewal& each = renewals[index];
    each.outcome = renewed(round.request, index);
    each.leasedFrom = leasedFrom(round.request, each.ttl);
    each.leasedFor = each.ttl;
    const bool failed = each.outcome == RenewOutcome::unavailable || each.outcome == RenewOutcome::unknown;
    each.cause = failed ? store + ": no quorum: " + reasons(nodes, round.request) : std::string();
  }
  repair(round.request, renewals, values);
}

RenewOutcome RedlockDriver::Impl::renewed(const Request& round, std::size_t index) const {
  const Tally votes = tally(round, [&](const Answer& answer) { return flagVote(answer, index); });
  if (votes.yes >= quorum()) return RenewOutcome::renewed;
  if (votes.no > nodes.size() - quorum()) return RenewOutcome::notOwner;
  return votes.yes + votes.open + votes.lost > 0 ? RenewOutcome::unknown : RenewOutcome::unavailable;
}

RedlockDriver::Impl::Renewing::Renewing(Impl& impl, std::span<const std::string> values)
    : impl_(impl), values_(values) {
  const std::lock_guard guard(impl_.mutex_);
  for (const std::string& value : values_) ++impl_.renewing_[value].times;
}

RedlockDriver::Impl::Renewing::~Renewing() {
  const std::lock_guard guard(impl_.mutex_);
  for (const std::string& value : values_) {
    const auto own = impl_.renewing_.find(value);
    if (--own->second.times == 0) impl_.renewing_.erase(own);
  }
}

void RedlockDriver::Impl::noteRelease(const std::string& value) {
  const std::lock_guard guard(mutex_);
  const auto own = renewing_.find(value);
  if (own != renewing_.end()) own->second.released = true;
}

// A quorum has just confirmed the lease, so that nobody else can have one: a node that has lost the key (an
// operator's DEL, a jump of its clock), or never had it, may vote for it. Nothing waits for that. A release
// is noted before it is sent: what is sent here before that, it deletes again; after that, nothing is.
void RedlockDriver::Impl::repair(const Request& round, std::span<const Renewal> renewals,
                                 std::span<const std::string> values) {
  const std::lock_guard guard(mutex_);
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    if (!voters.unfit(node, now()).empty()) continue;
    Request again;
    for (std::size_t index = 0; index < renewals.size(); ++index) {
      const Renewal& each = renewals[index];
      const bool missing =
          each.outcome == RenewOutcome::renewed && flagVote(round.answers()[node], index) == Vote::no;
      if (!missing || renewing_.find(values[index])->second.released) continue;
      again.add({"SET", each.claim.key, values[index], "NX", "PX", std::to_string(each.ttl.count())});
    }
    if (again.size() > 0) nodes.tell(node, again);
  }
}

}  // namespace lockkeeper::redis
