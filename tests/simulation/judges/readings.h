#pragma once

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>

#include "simulation/judges/judge.h"
#include "simulation/machine/scheduler.h"

namespace lockkeeper::simulation {

/// A value that is read through caches: how old it may be that one serves, and who loads it.
class Readings {
 public:
  Readings(Scheduler& scheduler, Judge& judge) : scheduler_(scheduler), judge_(judge) {}

  /// The value is another one from now on.
  std::uint64_t change() noexcept { return ++version_; }
  /// No read that begins now may be served one from before that change.
  void invalidated(std::uint64_t version) noexcept { oldest_ = std::max(oldest_, version); }

  /// What a loader that begins now returns. While no store fails, one of them runs at a time.
  std::string load() {
    if (++loaders_ > 1 && judge_.calm) judge_.fail("the value", "is loaded by two at a time");
    return std::to_string(version_) + " " + std::to_string(scheduler_.now());
  }
  void loaded() noexcept { --loaders_; }

  struct Read {
    std::uint64_t oldest;
    Time began;
  };
  Read begins() const noexcept { return {oldest_, scheduler_.now()}; }
  /// `value` was served, which is no longer kept than `most` after its load began.
  void served(const Read& read, const std::string& value, Time most) {
    ++count_;
    std::uint64_t version = 0;
    Time loaded = 0;
    std::istringstream(value) >> version >> loaded;
    if (version < read.oldest)
      judge_.fail("the value", "was invalidated before it was read: " + std::to_string(version) + ", not " +
                                   std::to_string(read.oldest));
    if (read.began - loaded > most)
      judge_.fail("the value", "is " + std::to_string((read.began - loaded) / millisecond) + " ms old");
  }
  std::uint64_t count() const noexcept { return count_; }

 private:
  Scheduler& scheduler_;
  Judge& judge_;
  std::uint64_t version_ = 1;
  std::uint64_t oldest_ = 1;
  std::uint64_t count_ = 0;
  int loaders_ = 0;
};

}  // namespace lockkeeper::simulation
