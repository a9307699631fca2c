#include "http/filter_rules.h"

namespace lockkeeper::poco {

void checkRange(const std::string& what, std::size_t value, std::size_t least, std::size_t most) {
  if (value >= least && value <= most) return;
  throw std::invalid_argument(what + " is " + std::to_string(value) + ": " + std::to_string(least) + " to " +
                              std::to_string(most) + " are allowed");
}

void checkLock(const std::string& what, const LockOptions& options) {
  try {
    checkOptions(options);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(what + ": " + error.what());
  }
}

}  // namespace lockkeeper::poco
