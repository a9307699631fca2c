#include "cluster/cluster_renewals.h"

#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>

#include "cluster/journey.h"
#include "store/companion_key.h"

namespace lockkeeper::redis {

namespace {

void setCause(Renewal& renewal, RenewOutcome outcome, const char* why) noexcept {
  renewal.outcome = outcome;
  try {
    renewal.cause = why;
  } catch (...) {
    renewal.cause.clear();  // no memory for the words
  }
}

bool hasFailed(const Renewal& renewal) {
  return renewal.outcome == RenewOutcome::unavailable || renewal.outcome == RenewOutcome::unknown;
}

}  // namespace

/// One call of renew().
class ClusterRenewals::Round {
 public:
  Round(ClusterRenewals& owner, std::size_t renewals, Instant deadline)
      : owner_(owner), deadline_(deadline), caller_(std::this_thread::get_id()) {
    settled_.reserve(renewals);
  }

  /// Returns when each renewal has its outcome and is told.
  void run(std::span<Renewal> renewals);

 private:
  Groups groupsOf(std::span<Renewal> renewals);
  void begin(const Stop& stop, const Group& group, int hops);
  void work(const Stop& stop, const Group& group, int hops) noexcept;
  std::vector<std::optional<Redirect>> ask(const Stop& stop, const Group& group);
  void settle(const Renewal& renewal);
  static void tell(const Renewal& renewal);

  ClusterRenewals& owner_;
  const Instant deadline_;
  const std::thread::id caller_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<const Renewal*> settled_;  // by other threads
  std::size_t underWay_ = 0;             // threads
  std::list<std::jthread> threads_;
};

void ClusterRenewals::renew(std::span<Renewal> renewals, Instant deadline) {
  Round(*this, renewals.size(), deadline).run(renewals);
}

void ClusterRenewals::Round::run(std::span<Renewal> renewals) {
  const Groups groups = groupsOf(renewals);
  const bool alone = groups.size() == 1;
  for (const auto& [stop, group] : groups) alone ? work(stop, group, 0) : begin(stop, group, 0);
  std::size_t told = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return told < settled_.size() || underWay_ == 0; });
    if (told == settled_.size()) return;
    const Renewal& next = *settled_[told++];
    lock.unlock();
    tell(next);
    lock.lock();
  }
}

ClusterRenewals::Groups ClusterRenewals::Round::groupsOf(std::span<Renewal> renewals) {
  Groups groups;
  for (Renewal& each : renewals) {
    try {
      const ClusterMap::Route route = owner_.map_.route(hashSlot(each.claim.key), deadline_);
      groups[{route.master, false}].push_back(&each);
    } catch (const Error& error) {
      setCause(each, RenewOutcome::unavailable, error.what());
      settle(each);
    }
  }
  return groups;
}

void ClusterRenewals::Round::begin(const Stop& stop, const Group& group, int hops) {
  try {
    const std::lock_guard guard(mutex_);
    threads_.emplace_back([this, stop, group, hops] {
      work(stop, group, hops);
      const std::lock_guard ended(mutex_);
      --underWay_;
      changed_.notify_one();
    });
    ++underWay_;
  } catch (const std::exception&) {
    work(stop, group, hops);  // no thread or no memory for it: later than it could be
  }
}

// Where the node says that another one has the lease, asks that one, too; the others do not wait for it.
void ClusterRenewals::Round::work(const Stop& stop, const Group& group, int hops) noexcept {
  std::vector<std::optional<Redirect>> redirects;
  try {
    redirects = ask(stop, group);
  } catch (const std::exception& error) {
    for (Renewal* each : group) {
      setCause(*each, RenewOutcome::unknown, error.what());
      settle(*each);
    }
    return;
  }
  for (Renewal* each : group) {
    if (!hasFailed(*each)) settle(*each);
  }
  Groups others;
  for (std::size_t index = 0; index < group.size(); ++index) {
    Renewal& each = *group[index];
    if (!hasFailed(each)) continue;
    try {
      const auto next = owner_.onward(stop, each, redirects[index], deadline_);
      if (next && hops < mostHops) {
        others[*next].push_back(&each);
        continue;
      }
    } catch (const std::exception&) {
      // No memory to ask elsewhere: the outcome stands.
    }
    settle(each);
  }
  for (const auto& [next, part] : others) begin(next, part, hops + 1);
}

// Writes the outcomes, and returns the redirects.
std::vector<std::optional<Redirect>> ClusterRenewals::Round::ask(const Stop& stop, const Group& group) {
  std::vector<Renewal> calls;
  calls.reserve(group.size());
  for (const Renewal* each : group) {
    calls.push_back({.claim = each->claim, .ttl = each->ttl, .atLeast = each->atLeast});
  }
  std::vector<std::optional<Redirect>> redirects(group.size());
  const std::shared_ptr<LockNode> node = owner_.nodes_.of(stop.first, stop.second);
  node->renew(calls, redirects, deadline_);
  for (std::size_t index = 0; index < group.size(); ++index) {
    Renewal& each = *group[index];
    each.outcome = calls[index].outcome;
    each.leasedFrom = calls[index].leasedFrom;
    each.leasedFor = calls[index].leasedFor;
    each.cause = std::move(calls[index].cause);
  }
  return redirects;
}

// It has its last outcome.
void ClusterRenewals::Round::settle(const Renewal& renewal) {
  if (std::this_thread::get_id() == caller_) return tell(renewal);
  const std::lock_guard guard(mutex_);
  settled_.push_back(&renewal);
  changed_.notify_one();
}

void ClusterRenewals::Round::tell(const Renewal& renewal) {
  if (renewal.told) renewal.told(renewal);
}

// Where to ask for this lease now; empty when nowhere else.
std::optional<ClusterRenewals::Stop> ClusterRenewals::onward(const Stop& stop, const Renewal& renewal,
                                                             const std::optional<Redirect>& redirect,
                                                             Instant deadline) {
  ClusterMap::Route route{hashSlot(renewal.claim.key), stop.first};
  if (redirect && (redirect->kind == Redirect::Kind::moved || redirect->kind == Redirect::Kind::ask)) {
    NodeAddress to = redirect->to;
    if (to.host.empty()) to.host = stop.first.host;
    const bool isOnItsWay = redirect->kind == Redirect::Kind::ask;
    if (!isOnItsWay) map_.moved(route, to);
    return Stop{to, isOnItsWay};
  }
  if (renewal.outcome == RenewOutcome::unknown || redirect) {
    map_.suspect(route);
    return std::nullopt;
  }
  if (!map_.reconsider(route, deadline)) return std::nullopt;
  return Stop{route.master, false};
}

}  // namespace lockkeeper::redis
