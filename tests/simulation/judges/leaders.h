#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "simulation/judges/judge.h"
#include "simulation/machine/scheduler.h"

namespace lockkeeper::simulation {

/// Who believes to be the leader, and whose work goes on: two never are, as long as nobody is paused.
class Leaders {
 public:
  Leaders(Scheduler& scheduler, Judge& judge) : scheduler_(scheduler), judge_(judge) {}

  struct Candidate {
    int process;
    std::function<bool()> leads{};  // null: it is not asked
    bool works = false;
    bool late = false;  // it was elected when it did not lead any more
    std::uint64_t pausesBefore = 0;
  };
  using Token = std::list<Candidate>::iterator;

  Token add() { return candidates_.insert(candidates_.end(), {scheduler_.thisProcess()}); }
  /// From now on, it is asked in this way whether it leads; null: not any more. Blocks while somebody asks.
  void ask(Token token, std::function<bool()> leads) {
    while (looking_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    token->leads = std::move(leads);
  }
  void remove(Token token) { candidates_.erase(token); }

  /// It was elected, and its work may begin.
  void begins(Token token, std::optional<Fence> fence) {
    ++terms_;
    if (token->works) judge_.fail(name(*token), "is elected twice in a row");
    {
      const Uninterrupted atOnce(scheduler_);
      token->late = !leads(*token);
      if (!token->late) compare(*token, fence);
      token->works = true;
      token->pausesBefore = judge_.pauses();
    }
    look();
  }
  /// Its work has ended.
  void ends(Token token) {
    if (!token->works) judge_.fail(name(*token), "is deposed without a term");
    token->works = false;
  }

  /// Asks all at one moment who leads.
  void look() {
    ++looking_;
    for (int attempt = 0; attempt < 3; ++attempt) {
      const Uninterrupted asked(scheduler_);
      const std::uint64_t before = scheduler_.switches();
      std::string leading;
      int count = 0;
      for (const Candidate& each : candidates_) {
        if (!leads(each)) continue;
        leading += (++count > 1 ? " and " : "") + name(each);
      }
      if (scheduler_.switches() != before) continue;  // one of them had to be waited for
      if (count > 1) judge_.fail(leading, "lead at the same time");
      if (count == 1) lastSeen_ = scheduler_.now();
      break;
    }
    --looking_;
  }
  /// When somebody was seen to lead.
  Time lastSeen() const noexcept { return lastSeen_; }

  std::uint64_t terms() const noexcept { return terms_; }

 private:
  // With the others, of one that leads and begins its work.
  void compare(const Candidate& elected, std::optional<Fence> fence) {
    for (const Candidate& each : candidates_) {
      if (each.works && !each.late && !judge_.pausedSince(each.pausesBefore))
        judge_.fail(name(elected), "is elected while the work of " + name(each) + " goes on");
    }
    if (!fence) return;
    const auto given = static_cast<std::uint64_t>(*fence);
    if (given <= highest_)
      judge_.fail("the leader", "has fence " + std::to_string(given) + " after " + std::to_string(highest_));
    highest_ = given;
  }

  bool leads(const Candidate& candidate) {
    if (!candidate.leads) return false;
    const int asking = scheduler_.thisProcess();
    scheduler_.enterProcess(candidate.process);
    const bool does = candidate.leads();
    scheduler_.enterProcess(asking);
    return does;
  }
  std::string name(const Candidate& candidate) const { return scheduler_.process(candidate.process).name; }

  Scheduler& scheduler_;
  Judge& judge_;
  std::list<Candidate> candidates_;
  int looking_ = 0;
  std::uint64_t highest_ = 0;
  std::uint64_t terms_ = 0;
  Time lastSeen_ = 0;
};

}  // namespace lockkeeper::simulation
