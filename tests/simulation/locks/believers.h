#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "lockkeeper/lock.h"
#include "simulation/machine/scheduler.h"

namespace lockkeeper::simulation {

/// Who believes to have which key. At each grant, all other holders of the key are asked, each by the clock
/// of its own computer, whether they still believe to have it.
class Believers {
 public:
  explicit Believers(Scheduler& scheduler) : scheduler_(scheduler) {}

  struct Belief {
    const Lock* lock;
    int process;
    bool shared;
  };
  using Token = std::list<Belief>::iterator;

  Token granted(const std::string& key, const Lock& lock, bool shared) {
    const Uninterrupted asked(scheduler_);
    ++grants_;
    Key& its = keys_[key];
    for (const Belief& each : its.beliefs) {
      if (each.lock && (!shared || !each.shared) && believes(each)) {
        fail(key, "is held by two: " + text(each) + " still believes to have it, and it was granted to " +
                      text({&lock, scheduler_.thisProcess(), shared}));
      }
    }
    const std::uint64_t fence = static_cast<std::uint64_t>(lock.fence().value_or(Fence{}));
    if (!shared && fence <= its.highest) {
      fail(key, "has fence " + std::to_string(fence) + " after " + std::to_string(its.highest));
    }
    its.highest = std::max(its.highest, fence);
    return its.beliefs.insert(its.beliefs.end(), {&lock, scheduler_.thisProcess(), shared});
  }

  /// Before the release is sent.
  void givesUp(Token token) { token->lock = nullptr; }

  void fail(const std::string& key, const std::string& what) {
    faults_.push_back("at " + std::to_string(static_cast<double>(scheduler_.now()) / 1e9) + " s: " + key +
                      " " + what);
  }

  const std::vector<std::string>& faults() const noexcept { return faults_; }
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

  std::string text(const Belief& belief) const {
    return scheduler_.process(belief.process).name + (belief.shared ? " (shared)" : "");
  }

  Scheduler& scheduler_;
  std::map<std::string, Key> keys_;
  std::vector<std::string> faults_;
  std::uint64_t grants_ = 0;
};

}  // namespace lockkeeper::simulation
