#include "lockkeeper/redis/redlock_driver.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lock_replies.h"
#include "lock_value.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/fork_guard.h"
#include "node_group.h"
#include "redlock_votes.h"
#include "round_report.h"
#include "script.h"
#include "server_error.h"

namespace lockkeeper::redis {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds leastPatience{50};
constexpr milliseconds usualTtl{std::chrono::seconds{30}};  // for questions that have none
constexpr milliseconds fixedDrift{2};
constexpr std::uint32_t coreDrift = 1;  // percent: what core takes off by itself

std::string decimal(milliseconds length) { return std::to_string(length.count()); }

template <class Hook>
void notify(Hook&& hook) {
  try {
    hook();
  } catch (...) {
    // What a listener throws is dropped.
  }
}

}  // namespace

/// The nodes, and what the driver's operations share.
class RedlockDriver::Impl {
 public:
  Impl(RedlockOptions given, Environment world, std::shared_ptr<FenceSource> source);

  nanoseconds patience(milliseconds ttl) const;
  std::size_t quorum() const { return group.quorum(); }
  Instant now() const { return environment.clock->now(); }
  template <class VoteOf>
  void ask(Round& round, nanoseconds patience, Instant deadline, VoteOf voteOf);

  void checkTtl(milliseconds ttl) const;
  Instant leasedFrom(const Round& round, nanoseconds ttl) const;
  Granted accept(const Round& round, const AcquireRequest& request);
  Busy busy(const Round& round, std::size_t yes) const;
  void giveBack(const Round& round, const AcquireRequest& request);
  RenewOutcome renewed(const Round& round, std::size_t index) const;
  void repair(const Round& round, std::span<const Renewal> renewals, std::span<const std::string> values);
  [[noreturn]] void noQuorum(const Round& round) const { throwNoQuorum(store, group, round); }

  const ForkGuard forkGuard;
  const RedlockOptions options;
  const Environment environment;
  const std::string store;
  const std::shared_ptr<FenceSource> fences;
  NodeGroup group;
};

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
  milliseconds shortest = milliseconds::max();
  for (Renewal& each : renewals) {
    values.push_back(lockValue(each.claim));
    shortest = std::min(shortest, each.ttl);
    Script::renew().addTo(round.wire, Script::By::text, std::array{each.claim.key},
                          std::array<std::string_view, 2>{values.back(), decimal(each.ttl)});
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
  } catch (const Error&) {
    return;  // nothing was sent
  }
  for (std::size_t index = 0; index < renewals.size(); ++index) {
    renewals[index].outcome = impl_->renewed(round, index);
    renewals[index].leasedFrom = impl_->leasedFrom(round, renewals[index].ttl);
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

Promises RedlockDriver::promises() const {
  impl_->forkGuard.check();
  const std::string votes = std::to_string(impl_->group.size()) + " nodes, a quorum of " +
                            std::to_string(impl_->quorum()) + " keeps each lock; ";
  const auto& guard = impl_->options.restartGuard;
  return {.fence = impl_->fences ? impl_->fences->promise() : FencePromise::none,
          .durability = votes + (guard ? "a node that restarts does not vote for " + formatDuration(*guard)
                                       : "restartGuard is off: a node that restarts may vote twice")};
}

bool RedlockDriver::breakLock(std::string_view key, Instant deadline) {
  impl_->forkGuard.check();
  const auto voteOf = [](const Round::Seat& seat) { return flagVote(seat); };
  Round round(impl_->group.size());
  round.wire.add({"DEL", key});
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

RedlockDriver::Impl::Impl(RedlockOptions given, Environment world, std::shared_ptr<FenceSource> source)
    : options((given.check(), std::move(given))),
      environment(std::move(world)),
      store(options.display()),
      fences(std::move(source)),
      group(options, environment) {
  if (group.size() % 2 == 0) {
    notify([&] {
      environment.listener->noted(store,
                                  "an even number of nodes: the last one makes the quorum larger and "
                                  "survives no more failures");
    });
  }
  if (!options.restartGuard) {
    notify([&] {
      environment.listener->noted(store,
                                  "restartGuard is off: a node that restarts and has forgotten its "
                                  "votes may let a second holder in");
    });
  }
}

nanoseconds RedlockDriver::Impl::patience(milliseconds ttl) const {
  return options.nodeTimeout.value_or(std::max(ttl / 20, leastPatience));
}

template <class VoteOf>
void RedlockDriver::Impl::ask(Round& round, nanoseconds patience, Instant deadline, VoteOf voteOf) {
  group.ask(round, patience, deadline);
  const Instant end = now();
  for (std::size_t index = 0; index < round.seats.size(); ++index) {
    if (!round.invited[index]) continue;
    const Round::Seat& seat = round.seats[index];
    const Vote vote = voteOf(seat);
    if (vote == Vote::nonsense) group.disconnect(index, "the server sent a reply of an unexpected form");
    const Reply* const error = errorIn(seat);
    if (error != nullptr && isError(*error, "READONLY")) {
      group.disconnect(index, "the server is not the master any more");
    }
    const Instant answeredAt = seat.answer() != nullptr ? seat.answer()->answeredAt : end;
    notify([&] {
      environment.listener->nodeAsked(group.store(index), outcomeOf(seat, vote),
                                      answeredAt - round.startedAt);
    });
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
  return {leasedFrom(round, ttl), fence};
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
      again.add({"SET", each.claim.key, values[index], "NX", "PX", decimal(each.ttl)});
    }
    if (again.size() > 0) group.tell(node, again);
  }
}

}  // namespace lockkeeper::redis
