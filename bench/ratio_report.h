#pragma once

#include <benchmark/benchmark.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace lockkeeper::bench {

/// The console report of Google Benchmark, and after it the median time of some benchmarks over that of their
/// raw floor, measured in the same run.
class RatioReport final : public benchmark::ConsoleReporter {
 public:
  struct Line {
    std::string name;
    std::string floor;
    std::string wanted;
  };

  explicit RatioReport(std::vector<Line> lines) : lines_(std::move(lines)) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      const bool median = run.run_type == Run::RT_Aggregate && run.aggregate_name == "median";
      if (median || run.run_type == Run::RT_Iteration) times_[run.run_name.str()] = run.GetAdjustedRealTime();
    }
  }

  void Finalize() override {
    std::printf("\n");
    for (const Line& line : lines_) {
      const auto ours = times_.find(line.name), floor = times_.find(line.floor);
      if (ours == times_.end() || floor == times_.end()) continue;
      std::printf("%-44s %.2fx the time of %s (wanted: %s)\n", line.name.c_str(),
                  ours->second / floor->second, line.floor.c_str(), line.wanted.c_str());
    }
  }

 private:
  const std::vector<Line> lines_;
  std::map<std::string, double> times_;
};

}  // namespace lockkeeper::bench
