#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "lockkeeper/base/clock.h"

namespace lockkeeper::poco {

/// Bounds how many log lines of one kind there are: ten in ten seconds, so that thousands of calls to a store
/// that is down do not fill the log. Thread-safe.
class LogThrottle {
 public:
  /// How many lines of the kind were left out since the last one; empty when this one, of `now`, is left out,
  /// too. `before` were left out before this one by somebody else. It remembers each kind for ever: there
  /// must be few.
  std::optional<std::size_t> admit(std::string_view kind, Instant now, std::size_t before = 0);

 private:
  struct Kind {
    Instant periodEnds = Instant::min();
    std::size_t logged = 0;   // in the period
    std::size_t leftOut = 0;  // since the last line
  };

  std::mutex mutex_;
  std::map<std::string, Kind, std::less<>> kinds_;
};

/// ", and 7 like it were left out"; empty for none.
std::string leftOutText(std::size_t lines);

}  // namespace lockkeeper::poco
