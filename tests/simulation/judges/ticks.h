#pragma once

#include <time.h>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "simulation/judges/judge.h"
#include "simulation/machine/scheduler.h"

namespace lockkeeper::simulation {

/// Which ticks of a schedule were run, and how soon a task was run again.
class Ticks {
 public:
  Ticks(Scheduler& scheduler, Judge& judge) : scheduler_(scheduler), judge_(judge) {}

  static constexpr std::chrono::seconds period{2};

  /// The tick of that time, as TickLoop writes it, is run.
  void ran(const std::string& tick) {
    ++runs_;
    if (!ran_.insert(tick).second) judge_.fail("the tick " + tick, "is run twice");
  }
  /// An instance has told why it was not run.
  void excused(const std::string& tick) { excused_.insert(tick); }
  /// Ticks within that time of the wall clock came while an instance was there.
  void passed(std::chrono::sys_seconds after, std::chrono::sys_seconds until) {
    for (auto tick = after - after.time_since_epoch() % period + period; tick <= until; tick += period)
      passed_.insert(text(tick));
  }

  /// A task that may begin every `atLeast` begins, in a call that began then.
  void begins(Time called, Time atLeast) {
    ++runs_;
    const Time since = scheduler_.now() - lastCalled_;
    if (since < atLeast - atLeast / 100)
      judge_.fail("the task", "begins again after " + std::to_string(since / millisecond) + " ms");
    lastCalled_ = called;
  }

  /// When all instances have gone.
  void check() {
    if (!judge_.calm) return;
    for (const std::string& each : passed_) {
      if (!ran_.contains(each) && !excused_.contains(each)) judge_.fail("the tick " + each, "is not run");
    }
  }

  std::uint64_t runs() const noexcept { return runs_; }

 private:
  static std::string text(std::chrono::sys_seconds tick) {
    const time_t seconds = tick.time_since_epoch().count();
    tm parts{};
    gmtime_r(&seconds, &parts);
    char buffer[32];
    strftime(buffer, sizeof buffer, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return buffer;
  }

  Scheduler& scheduler_;
  Judge& judge_;
  std::set<std::string> ran_;
  std::set<std::string> excused_;
  std::set<std::string> passed_;
  Time lastCalled_ = -second;
  std::uint64_t runs_ = 0;
};

}  // namespace lockkeeper::simulation
