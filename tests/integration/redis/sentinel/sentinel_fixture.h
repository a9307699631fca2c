#pragma once

#include <memory>
#include <string>

#include "lockkeeper/lock_manager.h"
#include "redis_fixture.h"
#include "sentinel_group.h"

namespace lockkeeper::test {

using namespace std::chrono_literals;

inline std::shared_ptr<LockDriver> openUri(const std::string& uri) {
  StoreRegistry registry;
  redis::use(registry);
  return registry.open(uri);
}

/// The error of the first operation, as "code: message".
inline std::string faultOf(const std::string& uri) {
  try {
    (void)openUri(uri)->acquire(Claimant{}.request());
  } catch (const Error& error) {
    return std::string(toString(error.code())) + ": " + error.what();
  }
  return "no error";
}

}  // namespace lockkeeper::test
