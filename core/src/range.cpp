#include "range.h"

#include <stdexcept>
#include <string>

#include "lockkeeper/duration.h"

namespace lockkeeper::detail {

void checkRange(const char* name, std::chrono::milliseconds value, std::chrono::milliseconds least,
                std::chrono::milliseconds most) {
  if (value >= least && value <= most) return;
  throw std::invalid_argument(std::string(name) + " is " + std::to_string(value.count()) +
                              " ms: it must be " + formatDuration(least) + " to " + formatDuration(most));
}

}  // namespace lockkeeper::detail
