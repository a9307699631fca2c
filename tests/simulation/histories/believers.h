#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <string>

#include "lockkeeper/lock.h"
#include "lockkeeper/permit/share.h"
#include "simulation/histories/judge.h"
#include "simulation/machine/scheduler.h"

namespace lockkeeper::simulation {

/// Who believes to have how much of which key. At each grant, all other holders of the key are asked, each by
/// the clock of its own computer, whether they still believe to have it.
class Believers {
 public:
  Believers(Scheduler& scheduler, Judge& judge) : scheduler_(scheduler), judge_(judge) {}

  struct Belief {
    const Lock* lock;
    int process;
    Share share;

    bool isWhole() const noexcept { return share.weight == share.limit; }
  };
  using Token = std::list<Belief>::iterator;

  /// The key is had as a whole.
  static constexpr Share whole{.weight = Share::most, .limit = Share::most};

  Token granted(const std::string& key, const Lock& lock, Share share) {
    const Uninterrupted asked(scheduler_);
    ++grants_;
    Key& its = keys_[key];
    const Belief own{&lock, scheduler_.thisProcess(), share};
    std::uint32_t taken = share.weight;
    std::string others;
    for (const Belief& each : its.beliefs) {
      if (!each.lock || !believes(each)) continue;
      taken += each.isWhole() ? share.limit : own.isWhole() ? share.weight : each.share.weight;
      others += (others.empty() ? "" : ", ") + text(each);
    }
    if (taken > share.limit) judge_.fail(key, "is held by " + others + ", and was granted to " + text(own));
    checkFence(key, its, own);
    return its.beliefs.insert(its.beliefs.end(), own);
  }

  /// Before the release is sent.
  void givesUp(Token token) { token->lock = nullptr; }

  std::uint64_t grants() const noexcept { return grants_; }

 private:
  struct Key {
    std::list<Belief> beliefs;
    std::uint64_t highest = 0;
  };

  bool believes(const Belief& belief) {
    const int asking = scheduler_.thisProcess();
    scheduler_.enterProcess(belief.process);
    const bool does = belief.lock->remaining().count() > 0;
    scheduler_.enterProcess(asking);
    return does;
  }

  // Where the store promises fences.
  void checkFence(const std::string& key, Key& its, const Belief& own) {
    const std::optional<Fence> given = own.lock->fence();
    if (!given) return;
    const auto fence = static_cast<std::uint64_t>(*given);
    if (own.isWhole() && fence <= its.highest)
      judge_.fail(key, "has fence " + std::to_string(fence) + " after " + std::to_string(its.highest));
    its.highest = std::max(its.highest, fence);
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
