#pragma once

#include <benchmark/benchmark.h>

#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "line.h"

namespace lockkeeper::bench {

/// The console report of Google Benchmark, and after it the median time of some benchmarks over that of their
/// raw floor, measured in the same run, as lines of the table of `./dev bench --check`.
class RatioReport final : public benchmark::ConsoleReporter {
 public:
  struct Ratio {
    std::string name;
    std::string floor;               ///< Empty: the time itself counts, in ns.
    std::optional<double> atMost{};  ///< Empty: it is shown only.
  };

  explicit RatioReport(std::vector<Ratio> ratios) : ratios_(std::move(ratios)) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      const bool median = run.run_type == Run::RT_Aggregate && run.aggregate_name == "median";
      if (median || run.run_type == Run::RT_Iteration) times_[run.run_name.str()] = run.GetAdjustedRealTime();
    }
  }

  void Finalize() override {
    std::printf("\n");
    for (const Ratio& each : ratios_) {
      const auto ours = times_.find(each.name), floor = times_.find(each.floor);
      if (ours == times_.end() || (!each.floor.empty() && floor == times_.end())) continue;
      const double ratio = each.floor.empty() ? ours->second : ours->second / floor->second;
      const char* const unit = each.floor.empty() ? " ns" : "x its time";
      print({.name = each.name,
             .floor = each.floor,
             .wanted = each.atMost ? "at most " + figure(*each.atMost, unit) : "",
             .measured = figure(ratio, unit),
             .passed = !each.atMost || ratio <= *each.atMost});
    }
  }

 private:
  const std::vector<Ratio> ratios_;
  std::map<std::string, double> times_;
};

}  // namespace lockkeeper::bench
