#pragma once

#include <cstdlib>
#include <random>
#include <string>

namespace lockkeeper::test {

/// For tests that choose at random, and print it: another one each time, or LOCKKEEPER_SEED, to see again
/// what failed once.
inline unsigned chosenSeed() {
  const char* const given = std::getenv("LOCKKEEPER_SEED");
  return given != nullptr ? static_cast<unsigned>(std::stoul(given)) : std::random_device()();
}

}  // namespace lockkeeper::test
