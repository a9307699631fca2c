#pragma once

#include <cstdio>
#include <optional>
#include <string>

namespace lockkeeper::bench {

/// What the bare client reaches that does the same as a line's with the least work.
struct Bare {
  std::string way;
  std::string measured{};
  bool passed = true;  ///< What is wanted of the line.
};

/// One line of the table of `./dev bench --check`, which bench/table reads from the programs' output.
struct Line {
  std::string name;
  std::string floor;     ///< What it is compared with, measured in the same run; empty: with nothing.
  std::string wanted{};  ///< Empty: it is shown only.
  std::string measured{};
  bool passed = true;
  std::optional<Bare> bare{};
};

inline void print(const Line& line) {
  const auto verdict = [](bool passed) { return passed ? "PASS" : "FAIL"; };
  std::printf("line | %s | %s | %s | %s | %s | %s | %s | %s\n", line.name.c_str(), line.floor.c_str(),
              line.wanted.c_str(), line.measured.c_str(), line.wanted.empty() ? "" : verdict(line.passed),
              line.bare ? line.bare->way.c_str() : "", line.bare ? line.bare->measured.c_str() : "",
              line.bare ? verdict(line.bare->passed) : "");
}

/// A figure with its unit, such as "1.15x".
inline std::string figure(double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, value < 10 ? "%.2f%s" : "%.0f%s", value, unit);
  return text;
}

}  // namespace lockkeeper::bench
