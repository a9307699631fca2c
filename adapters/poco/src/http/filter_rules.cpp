#include "http/filter_rules.h"

namespace lockkeeper::poco {

void checkLock(const std::string& what, const LockOptions& options) {
  try {
    checkOptions(options);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(what + ": " + error.what());
  }
}

}  // namespace lockkeeper::poco
