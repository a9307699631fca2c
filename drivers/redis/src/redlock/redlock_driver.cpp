#include "lockkeeper/redis/redlock_driver.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

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
  if (impl_->observations)
    impl_->observations->exchange(quorum, impl_->patience(request.ttl), request.deadline);
  Round round = impl_->round();
  round.rules.allOrNone = true;
  round.rules.unfit = [this](std::size_t node, Instant now) { return impl_->voters.unfit(node, now); };
  addClaim(round.request, request, lockValue(request.claim));
  round.rules.enough = [quorum](const Request& open) { return isDecided(tally(open, claimVote), quorum); };
  impl_->ask(round, impl_->patience(request.ttl), request.deadline, claimVote);

  const Tally votes = tally(round.request, claimVote);
  if (votes.yes >= quorum) return impl_->accept(round.request, request);
  const bool isUndone = impl_->withdraw(round.request, request);
  // Nodes whose answer was not waited for count as there; those that let the time pass do not.
  const std::size_t there = votes.yes + votes.no + (isDecided(votes, quorum) ? votes.open : 0);
  if (votes.no == 0 || there < quorum) impl_->noQuorum(round.request, isUndone);
  return impl_->busy(round.request, votes.yes);
}

// A node that stands still costs a short lease no more than its own patience, whatever other leases are
// renewed with it. What no quorum has decided by then needs the slower nodes: it is asked once more, with the
// patience of the longest lease.
void RedlockDriver::renew(std::span<Renewal> renewals, Instant deadline) {
  impl_->forkGuard.check();
  if (renewals.empty()) return;
  std::vector<std::string> values;
  for (const Renewal& each : renewals) values.push_back(lockValue(each.claim).string());
  const Impl::Renewing renewing(*impl_, values);
  const auto [shortest, longest] = std::ranges::minmax_element(renewals, {}, &Renewal::ttl);
  const auto patience = impl_->patience(shortest->ttl);
  const auto longPatience = impl_->patience(longest->ttl);
  Round first = impl_->round();
  impl_->renew(first, renewals, values, patience, deadline);
  if (patience == longPatience) return;

  std::vector<std::size_t> open;
  std::vector<Renewal> again;
  std::vector<std::string> valuesAgain;
  for (std::size_t index = 0; index < renewals.size(); ++index) {
    Renewal& each = renewals[index];
    if (each.outcome == RenewOutcome::renewed || each.outcome == RenewOutcome::notOwner) {
      if (each.told) each.told(each);
      continue;
    }
    open.push_back(index);
    again.push_back(each);
    valuesAgain.push_back(values[index]);
  }
  if (open.empty()) return;
  Round second = impl_->round();
  second.rules.enough = [count = again.size(), quorum = impl_->quorum()](const Request& asked) {
    for (std::size_t index = 0; index < count; ++index) {
      const auto voteOf = [index](const Answer& answer) { return flagVote(answer, index); };
      if (!isDecided(tally(asked, voteOf), quorum)) return false;
    }
    return true;
  };
  impl_->renew(second, again, valuesAgain, longPatience, deadline);
  for (std::size_t index = 0; index < open.size(); ++index) {
    Renewal& each = renewals[open[index]];
    const bool perhapsBefore = each.outcome == RenewOutcome::unknown;
    each = std::move(again[index]);
    if (perhapsBefore && each.outcome == RenewOutcome::unavailable) each.outcome = RenewOutcome::unknown;
  }
}

ReleaseOutcome RedlockDriver::release(const Claim& claim, Instant deadline) {
  impl_->forkGuard.check();
  const std::size_t quorum = impl_->quorum();
  const auto voteOf = [](const Answer& answer) { return flagVote(answer); };
  Round round = impl_->round();
  const std::string value = lockValue(claim).string();
  Script::release().addTo(round.request, Script::By::text, std::array{claim.key},
                          std::array<std::string_view, 1>{value});
  impl_->noteRelease(value);
  round.rules.mustArrive = true;
  round.rules.enough = [=](const Request& open) { return isDecided(tally(open, voteOf), quorum); };
  impl_->ask(round, impl_->patience(usualTtl), deadline, voteOf);

  const Tally votes = tally(round.request, voteOf);
  if (votes.yes >= quorum) return ReleaseOutcome::released;
  if (votes.no > impl_->nodes.size() - quorum) return ReleaseOutcome::notOwner;
  if (votes.yes + votes.no + votes.open + votes.lost == 0) impl_->noQuorum(round.request);
  throw OutcomeUnknown(impl_->store +
                       ": the release did not reach a quorum: " + reasons(impl_->nodes, round.request));
}

std::optional<Holder> RedlockDriver::holder(std::string_view key, Instant deadline) {
  impl_->forkGuard.check();
  const std::size_t quorum = impl_->quorum();
  Round round = impl_->round();
  Script::holder().addTo(round.request, Script::By::text, std::array{key}, {});
  const auto agreed = [quorum](const Request& open) {
    return std::find_if(open.answers().begin(), open.answers().end(),
                        [&](const Answer& answer) { return agreeing(open, answer) >= quorum; });
  };
  round.rules.enough = [&](const Request& open) { return agreed(open) != open.answers().end(); };
  impl_->ask(round, impl_->patience(usualTtl), deadline, holderVote);

  const auto shown = agreed(round.request);
  if (shown == round.request.answers().end()) {
    const Tally votes = tally(round.request, holderVote);
    if (votes.yes + votes.no < quorum) impl_->noQuorum(round.request);
    return std::nullopt;  // the nodes disagree: nobody has a quorum
  }
  auto held = holderIn(shown->replies[0]);
  if (held) {
    held->remaining = quorumRemaining(round.request, *shown, quorum);
    held->endless = !held->remaining;
  }
  if (held && impl_->fences) held->fence = impl_->fences->last(key, deadline);
  return held;
}

std::string RedlockDriver::name() const { return impl_->store; }

Promises RedlockDriver::promises() const {
  impl_->forkGuard.check();
  const std::string votes = std::to_string(impl_->nodes.size()) + " nodes, a quorum of " +
                            std::to_string(impl_->quorum()) + " keeps each lock; ";
  const auto& guard = impl_->options.restartGuard;
  return {.fence = impl_->fences ? impl_->fences->promise() : FencePromise::none,
          .durability = votes + (guard ? "a node that restarts does not vote for " + formatDuration(*guard)
                                       : "restartGuard is off: a node that restarts may vote twice")};
}

bool RedlockDriver::breakLock(std::string_view key, Instant deadline, const Holder* shown) {
  impl_->forkGuard.check();
  const auto voteOf = [](const Answer& answer) { return flagVote(answer); };
  Round round = impl_->round();
  if (shown == nullptr) {
    round.request.add({"DEL", key});
  } else {
    const std::array<std::string_view, 1> arguments = {shown->grantId};
    Script::breakLock().addTo(round.request, Script::By::text, std::array{key}, arguments);
  }
  impl_->ask(round, impl_->patience(usualTtl), deadline, voteOf);
  const Tally votes = tally(round.request, voteOf);
  if (votes.yes + votes.no >= impl_->quorum()) return votes.yes > 0;
  if (votes.yes + votes.no + votes.open + votes.lost == 0) impl_->noQuorum(round.request);
  throw OutcomeUnknown(impl_->store +
                       ": the key was not deleted by a quorum: " + reasons(impl_->nodes, round.request));
}

std::vector<Quorate::View> RedlockDriver::views(std::string_view key, Instant deadline) {
  impl_->forkGuard.check();
  Round round = impl_->round();
  Script::holder().addTo(round.request, Script::By::text, std::array{key}, {});
  impl_->ask(round, impl_->patience(usualTtl), deadline, holderVote);
  std::vector<View> views;
  for (std::size_t index = 0; index < impl_->nodes.size(); ++index) {
    const Answer& answer = round.request.answers()[index];
    View& view = views.emplace_back();
    view.node = impl_->nodes.store(index);
    const Vote vote = holderVote(answer);
    if (vote == Vote::yes) {
      view.holder = holderIn(answer.replies[0]);
    } else if (vote != Vote::no) {
      view.fault = reasonOf(impl_->nodes.store(index), answer);
    }
  }
  return views;
}

}  // namespace lockkeeper::redis
