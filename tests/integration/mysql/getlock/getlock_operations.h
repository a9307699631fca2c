#pragma once

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "getlock_fixture.h"
#include "operation.h"

namespace lockkeeper::test {

/// The operations for which mysql+getlock asks its server. It knows by itself which names its process holds,
/// so who renews or releases must have acquired through the same driver.
inline std::vector<Operation> askingOperations() {
  std::vector<Operation> asking;
  for (const Operation& each : operations()) {
    const std::string name = each.name;
    if (name.starts_with("Acquire") || name.starts_with("Holder") || name == "RenewHeld" ||
        name == "ReleaseHeld")
      asking.push_back(each);
  }
  return asking;
}

inline bool heldByTheDriver(const Operation& operation) {
  const std::string name = operation.name;
  return name == "RenewHeld" || name == "ReleaseHeld";
}

using BrandAndOperation = std::tuple<Brand, Operation>;

inline std::string brandAndOperationName(const ::testing::TestParamInfo<BrandAndOperation>& info) {
  return std::string(nameOf(std::get<Brand>(info.param))) + std::get<Operation>(info.param).name;
}

inline auto allBrandsAndOperations() {
  return ::testing::Combine(::testing::ValuesIn(allBrands), ::testing::ValuesIn(askingOperations()));
}

}  // namespace lockkeeper::test
