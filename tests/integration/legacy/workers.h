#pragma once

#include <algorithm>
#include <chrono>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "legacy_fixture.h"

namespace lockkeeper::test {

/// Processes that work on the same keys at once, some in PHP, some ours.
class WorkersTest : public LegacyTest {
 protected:
  static constexpr std::size_t legacyWorkers = 6;
  static constexpr std::size_t ourWorkers = 4;

  /// Runs them to their end; returns what each has printed, those in PHP first.
  std::vector<std::string> runAll(const std::vector<std::string>& phpLine,
                                  const std::vector<std::string>& ourLine) {
    std::vector<Process> processes;
    for (std::size_t i = 0; i < legacyWorkers + ourWorkers; ++i) {
      ProcessOptions options;
      options.standardOutput = folder / ("output" + std::to_string(i));
      options.standardError = folder / "errors";
      processes.emplace_back(i < legacyWorkers ? phpLine : ourLine, options);
    }
    std::vector<std::string> outputs;
    for (std::size_t i = 0; i < legacyWorkers + ourWorkers; ++i) {
      EXPECT_EQ(processes[i].waitFor(std::chrono::seconds{90}), 0) << readFile(folder / "errors");
      outputs.push_back(readFile(folder / ("output" + std::to_string(i))));
    }
    return outputs;
  }

  TempFolder folder;
};

/// The sum of the numbers behind `word` in what workers have printed.
inline int sumOf(const std::vector<std::string>& outputs, const std::string& word) {
  int sum = 0;
  for (const std::string& output : outputs) {
    std::istringstream words(output);
    for (std::string each; words >> each;) {
      int number = 0;
      if (each == word && words >> number) sum += number;
    }
  }
  return sum;
}

}  // namespace lockkeeper::test
