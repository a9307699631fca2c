#pragma once

#include <memory>
#include <string>

#include "known_stores.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/store/shared_records.h"

namespace lockkeeper::test {

inline std::shared_ptr<LockDriver> openStore(const std::string& uri) { return knownStores().open(uri); }

/// Null when the store cannot keep a migration's state.
inline std::shared_ptr<SharedRecords> openStateStore(const std::string& uri) {
  return capability<SharedRecords>(openStore(uri));
}

}  // namespace lockkeeper::test
