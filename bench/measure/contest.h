#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "awake.h"
#include "lockkeeper/lock_manager.h"

namespace lockkeeper::bench {

/// What a call costs, in µs: on the wall's clock, and of processor time in this process and in the servers.
struct Cost {
  double time = 0;
  double client = 0;
  double server = 0;
};

/// One of several ways to do the same.
struct Way {
  std::string name;
  /// What a thread does again and again. Asked for once by each thread, which may connect first.
  std::function<std::function<void()>(int thread)> begin;
  std::size_t servers = 1;  ///< `Cost::server` is that of each of so many.
};

/// Takes and releases a lock of its own in each thread, and waits for both answers.
Way pairs(std::string name, LockManager& locks);

/// For figures that are only shown.
inline constexpr double shown = -1;

/// What `ours` is wanted to cost at most, and do at least, as a multiple of what `beside` does; in µs where
/// nothing is beside it.
struct Goal {
  std::string ours;
  std::string beside{};
  std::optional<double> server{};
  std::optional<double> client{};
  std::optional<double> time{};
  std::optional<double> perSecond{};
  /// Ways of bare clients that do the same as `ours`: the cheapest shows whether the goal can be reached.
  std::vector<std::string> bare{};
};

/// Measures ways in turn, in nine rounds of three tries, of which the cheapest counts, so that what else the
/// machine does meets all ways, and counts little. Processor time is the kernel's count of it; making threads
/// and connections is not counted. One thread shares a processor with its servers.
class Contest {
 public:
  /// `title` begins with the name of the program; `servers` says which processes count as servers, as
  /// serversOf() has it. The argument LINE lets only the contests run whose lines begin so; "--profile LINE
  /// FILE" only the way of that line, under perf, which writes the file.
  Contest(std::string title, std::string servers, int count, char** arguments);

  /// Prints the costs of all ways and then a line for each goal.
  void measure(int threads, const std::vector<Way>& ways, const std::vector<Goal>& goals);

 private:
  using Costs = std::map<std::string, std::vector<Cost>>;

  Cost run(const Way& way, int threads, const std::function<void()>& meanwhile) const;
  void profile(const Way& way, int threads) const;
  void print(const std::string& name, const Costs& costs, const Goal& goal) const;

  const Awake awake_{};
  const std::string title_;
  const std::string servers_;
  std::string only_{};     // the beginning of lines, or empty
  std::string profile_{};  // the file to write, or empty
};

}  // namespace lockkeeper::bench
