#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

/// What libFuzzer calls with each input. Must return 0; a fault is a crash or an abort.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// Inputs to start from, for the runs without libFuzzer. Each target defines its own.
std::vector<std::string> fuzzSeeds();

/// Ends the program, naming what does not hold.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

/// What a parser throws is one line.
inline void requireOneLine(const std::exception& fault) {
  require(std::string_view(fault.what()).find('\n') == std::string_view::npos, "errors are one line");
}
