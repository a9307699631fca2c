#include "lockkeeper/redis/redlock_driver.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lock/lock_replies.h"
#include "lock/lock_value.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "redlock/redlock_impl.h"
#include "redlock/redlock_votes.h"
#include "redlock/round_report.h"
#include "wire/protocol/script.h"

namespace lockkeeper::redis {

namespace {

constexpr std::chrono::milliseconds usualTtl{std::chrono::seconds{30}};  // for questions that have none

}  // namespace

RedlockDriver::RedlockDriver(RedlockOptions options, Environment environment,
                             std::shared_ptr<FenceSource> fences)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(environment), std::move(fences))) {}

RedlockDriver::~RedlockDriver() {
  // Closing an inherited connection properly would close the parent's: leaking it is right.
  if (impl_->forkGuard.inherited()) static_cast<void>(impl_.release());
}

AcquireResult RedlockDriver::acquire(const AcquireRequest& request) {
  impl_->forkGuard.check();
  impl_->checkTtl(request.ttl);
  const std::size_t quorum = impl_->quorum();
  Round round(impl_->group.size());
  round.takesVotes = true;
  addClaim(round.wire, request.claim.key, lockValue(request.claim), request.ttl, request.resend);
  round.settled = [quorum](const Round& open) { return isSettled(tally(open, claimVote), quorum); };
  impl_->ask(round, impl_->patience(request.ttl), request.deadline, claimVote);

  const Tally votes = tally(round, claimVote);
  if (votes.yes >= quorum) return impl_->accept(round, request);
  impl_->giveBack(round, request);
  // Nodes whose answer was not waited for count as there; those that let the time pass do not.
  const std::size_t there = votes.yes + votes.no + (isSettled(votes, quorum) ? votes.open : 0);
  if (votes.no == 0 || there < quorum) impl_->noQuorum(round);
  return impl_->busy(round, votes.yes);
}

void RedlockDriver::renew(std::span<Renewal> renewals, Instant deadline) {
  impl_->forkGuard.check();
  if (renewals.empty()) return;
  Round round(impl_->group.size());
  std::vector<std::string> values;
  auto shortest = std::chrono::milliseconds::max();
  for (Renewal& each : renewals) {
    values.push_back(lockValue(each.claim));
    shortest = std::min(shortest, each.ttl);
    Script::renew().addTo(round.wire, Script::By::text, std::array{each.claim.key},
                          std::array<std::string_view, 2>{values.back(), std::to_string(each.ttl.count())});
    each.outcome = RenewOutcome::unavailable;
  }
  try {
    impl_->ask(round, impl_->patience(shortest), deadline, [&](const Round::Seat& seat) {
      Vote vote = flagVote(seat);
      for (std::size_t index = 1; index < renewals.size() && vote != Vote::nonsense; ++index) {
        if (flagVote(seat, index) == Vote::nonsense) vote = Vote::nonsense;
      }
      return vote;
    });
  } catch (const Error& error) {
    for (Renewal& each : renewals) each.cause = error.what();
    return;  // nothing was sent
  }
  for (std::size_t index = 0; index < renewals.size(); ++index) {
    Renewal& each = renewals[index];
    each.outcome = impl_->renewed(round, index);
    each.leasedFrom = impl_->leasedFrom(round, each.ttl);
    each.leasedFor = each.ttl;
    const bool failed = each.outcome == RenewOutcome::unavailable || each.outcome == RenewOutcome::unknown;
    if (failed) each.cause = impl_->store + ": no quorum: " + reasons(impl_->group, round);
  }
  impl_->repair(round, renewals, values);
}

ReleaseOutcome RedlockDriver::release(const Claim& claim, Instant deadline) {
  impl_->forkGuard.check();
  const std::size_t quorum = impl_->quorum();
  const auto voteOf = [](const Round::Seat& seat) { return flagVote(seat); };
  Round round(impl_->group.size());
  Script::release().addTo(round.wire, Script::By::text, std::array{claim.key},
                          std::array<std::string_view, 1>{lockValue(claim)});
  round.mustArrive = true;
  round.settled = [=](const Round& open) { return isSettled(tally(open, voteOf), quorum); };
  impl_->ask(round, impl_->patience(usualTtl), deadline, voteOf);

  const Tally votes = tally(round, voteOf);
  if (votes.yes >= quorum) return ReleaseOutcome::released;
  if (votes.no > impl_->group.size() - quorum) return ReleaseOutcome::notOwner;
  if (votes.yes + votes.no + votes.open == 0) impl_->noQuorum(round);
  throw OutcomeUnknown(impl_->store +
                       ": the release did not reach a quorum: " + reasons(impl_->group, round));
}

std::optional<Holder> RedlockDriver::holder(std::string_view key, Instant deadline) {
  impl_->forkGuard.check();
  const std::size_t quorum = impl_->quorum();
  Round round(impl_->group.size());
  Script::holder().addTo(round.wire, Script::By::text, std::array{key}, {});
  const auto agreed = [quorum](const Round& open) {
    return std::find_if(open.seats.begin(), open.seats.end(),
                        [&](const Round::Seat& seat) { return agreeing(open, seat) >= quorum; });
  };
  round.settled = [&](const Round& open) { return agreed(open) != open.seats.end(); };
  impl_->ask(round, impl_->patience(usualTtl), deadline, holderVote);

  const auto seat = agreed(round);
  if (seat == round.seats.end()) {
    const Tally votes = tally(round, holderVote);
    if (votes.yes + votes.no < quorum) impl_->noQuorum(round);
    return std::nullopt;  // the nodes disagree: nobody has a quorum
  }
  auto held = holderIn(seat->answer()->reply(0));
  if (held) held->remaining = quorumRemaining(round, *seat, quorum);
  if (held && impl_->fences) held->fence = impl_->fences->last(key, deadline);
  return held;
}

std::string RedlockDriver::name() const { return impl_->store; }

Promises RedlockDriver::promises() const {
  impl_->forkGuard.check();
  const std::string votes = std::to_string(impl_->group.size()) + " nodes, a quorum of " +
                            std::to_string(impl_->quorum()) + " keeps each lock; ";
  const auto& guard = impl_->options.restartGuard;
  return {.fence = impl_->fences ? impl_->fences->promise() : FencePromise::none,
          .durability = votes + (guard ? "a node that restarts does not vote for " + formatDuration(*guard)
                                       : "restartGuard is off: a node that restarts may vote twice")};
}

bool RedlockDriver::breakLock(std::string_view key, Instant deadline, const Holder* shown) {
  impl_->forkGuard.check();
  const auto voteOf = [](const Round::Seat& seat) { return flagVote(seat); };
  Round round(impl_->group.size());
  if (shown == nullptr) {
    round.wire.add({"DEL", key});
  } else {
    const std::array<std::string_view, 1> arguments = {shown->grantId};
    Script::breakLock().addTo(round.wire, Script::By::text, std::array{key}, arguments);
  }
  impl_->ask(round, impl_->patience(usualTtl), deadline, voteOf);
  const Tally votes = tally(round, voteOf);
  if (votes.yes + votes.no >= impl_->quorum()) return votes.yes > 0;
  if (votes.yes + votes.no + votes.open == 0) impl_->noQuorum(round);
  throw OutcomeUnknown(impl_->store +
                       ": the key was not deleted by a quorum: " + reasons(impl_->group, round));
}

std::vector<Quorate::View> RedlockDriver::views(std::string_view key, Instant deadline) {
  impl_->forkGuard.check();
  Round round(impl_->group.size());
  Script::holder().addTo(round.wire, Script::By::text, std::array{key}, {});
  impl_->ask(round, impl_->patience(usualTtl), deadline, holderVote);
  std::vector<View> views;
  for (std::size_t index = 0; index < round.seats.size(); ++index) {
    const Round::Seat& seat = round.seats[index];
    View& view = views.emplace_back();
    view.node = impl_->group.store(index);
    const Vote vote = holderVote(seat);
    if (vote == Vote::yes) {
      view.holder = holderIn(seat.answer()->reply(0));
    } else if (vote != Vote::no) {
      view.fault = reasonOf(impl_->group.store(index), seat);
    }
  }
  return views;
}

}  // namespace lockkeeper::redis
