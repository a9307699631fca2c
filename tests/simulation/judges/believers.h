#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockkeeper/lock.h"
#include "lockkeeper/permit/share.h"
#include "lockkeeper/permit/upgradeable_lock.h"
#include "simulation/judges/judge.h"
#include "simulation/machine/scheduler.h"

namespace lockkeeper::simulation {

/// Who believes to have how much of which key. At each grant, all other holders of the key are asked, each by
/// the clock of its own computer, whether they still believe to have it.
class Believers {
 public:
  Believers(Scheduler& scheduler, Judge& judge) : scheduler_(scheduler), judge_(judge) {}

  struct Belief {
    std::function<bool()> holds;  // null: it was given up
    int process;
    Share share;
    const Lock* lock = nullptr;  // whose renewals are heard of
    Time end = never;            // of its lease, as it was last known, by the clock of its process
    bool isOver = false;         // it was found lost

    bool isWhole() const noexcept { return share.weight == share.limit; }
  };
  using Token = std::list<Belief>::iterator;

  /// The key is had as a whole.
  static constexpr Share whole{.weight = Share::most, .limit = Share::most};

  Token granted(const std::string& key, const Lock& lock, Share share) {
    return granted(key,
                   {[&lock] { return lock.remaining().count() > 0; }, scheduler_.thisProcess(), share, &lock},
                   lock.fence());
  }
  Token granted(const std::string& key, const UpgradeableLock& lock, Share share) {
    return granted(key, {[&lock] { return lock.valid(); }, scheduler_.thisProcess(), share}, lock.fence());
  }
  /// All keys of a set are had as a whole.
  std::vector<Token> granted(const LockSet& set) {
    std::vector<Token> tokens;
    for (const Lock& each : set.locks()) tokens.push_back(granted(std::string(each.key()), each, whole));
    return tokens;
  }

  /// Before the release is sent.
  void givesUp(Token token) { token->holds = nullptr; }

  /// This process hears that its lock was renewed at `when`, by its own clock. Of those who were granted a
  /// whole key in a process, at most one has it still: it is his. The others have lost it.
  void renewed(const std::string& key, Time when) {
    const auto found = keys_.find(key);
    if (found == keys_.end()) return;
    const Uninterrupted looked(scheduler_);
    for (Belief& each : found->second.beliefs) {
      const bool isIts = each.process == scheduler_.thisProcess() && each.isWhole() && each.lock != nullptr;
      if (!isIts || !each.holds || !each.holds()) continue;
      if (when >= each.end) judge_.fail(key, "was renewed by " + text(each) + " after its lease had ended");
      each.end = endOf(*each.lock);
    }
  }

  std::uint64_t grants() const noexcept { return grants_; }

 private:
  struct Key {
    std::list<Belief> beliefs;
    std::uint64_t highest = 0;
  };

  Token granted(const std::string& key, Belief own, std::optional<Fence> fence) {
    const Uninterrupted asked(scheduler_);
    ++grants_;
    Key& its = keys_[key];
    // Who was paused since may have lost it already, and others may have more than he had seen.
    if (own.holds()) check(key, its, own, fence);
    if (own.lock != nullptr) own.end = endOf(*own.lock);
    return its.beliefs.insert(its.beliefs.end(), std::move(own));
  }

  void check(const std::string& key, Key& its, const Belief& own, std::optional<Fence> fence) {
    std::uint32_t taken = own.share.weight;
    std::string others;
    for (Belief& each : its.beliefs) {
      if (!each.holds || !believes(key, each)) continue;
      taken += each.isWhole() ? own.share.limit : own.isWhole() ? own.share.weight : each.share.weight;
      others += (others.empty() ? "" : ", ") + text(each);
    }
    if (taken > own.share.limit)
      judge_.fail(key, "is held by " + others + ", and was granted to " + text(own));
    // Where the store promises fences.
    if (!fence) return;
    const auto given = static_cast<std::uint64_t>(*fence);
    if (own.isWhole() && given <= its.highest)
      judge_.fail(key, "has fence " + std::to_string(given) + " after " + std::to_string(its.highest));
    its.highest = std::max(its.highest, given);
  }

  // Who has lost a lock does not get it back.
  bool believes(const std::string& key, Belief& belief) {
    const int asking = scheduler_.thisProcess();
    scheduler_.enterProcess(belief.process);
    const bool does = belief.holds();
    scheduler_.enterProcess(asking);
    if (does && belief.isOver) judge_.fail(key, "is held again by " + text(belief) + ", who had lost it");
    belief.isOver = !does;
    return does;
  }

  Time endOf(const Lock& lock) const {
    const Time left = lock.remaining().count();
    return scheduler_.bootTime(scheduler_.thisProcess()) + left;
  }

  std::string text(const Belief& belief) const {
    return scheduler_.process(belief.process).name +
           (belief.isWhole() ? "" : " (a share of " + std::to_string(belief.share.weight) + ")");
  }

  Scheduler& scheduler_;
  Judge& judge_;
  std::map<std::string, Key> keys_;
  std::uint64_t grants_ = 0;
};

}  // namespace lockkeeper::simulation
