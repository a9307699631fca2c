#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "claimant.h"

#include <gtest/gtest.h>

namespace lockkeeper::test {

/// One thing that is asked of a driver, so that each fault is tried on all of them.
struct Operation {
  const char* name;
  bool changesTheStore;  ///< Then a lost reply must be OutcomeUnknown.

  /// Makes the key ready, through an undisturbed client.
  void (*prepare)(LockDriver& direct, const Claimant& who);

  /// What the driver says, as text. Throws Error, also where a renewal reports a fault as a value.
  std::string (*perform)(LockDriver& driver, const Claimant& who, Instant deadline);

  /// What it must say when nothing is wrong; asked afterwards.
  std::string (*expected)(LockDriver& direct, const Claimant& who);
};

const std::vector<Operation>& operations();

void PrintTo(const Operation& operation, std::ostream* out);
inline std::string operationName(const ::testing::TestParamInfo<Operation>& info) { return info.param.name; }

/// What perform() says, or "error: " and the code.
std::string attempt(const Operation& operation, LockDriver& driver, const Claimant& who, Instant deadline);

}  // namespace lockkeeper::test
