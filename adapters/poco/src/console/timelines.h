#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "console/json.h"
#include "lockkeeper/base/clock.h"
#include "lockkeeper/driver/driver.h"

namespace lockkeeper::poco {

/// Something that happened to a key.
struct TimelineEntry {
  Instant at{};
  bool before = false;      ///< It may have happened earlier.
  std::string_view what{};  ///< One of the words that activity.js knows; lives as long as the program.
  std::string detail{};     ///< Who, or why.
  std::optional<Fence> fence{};
  std::optional<std::chrono::nanoseconds> took{};
  bool isLoss = false;  ///< The holder was to have the key for longer.
};

/// The last 32 entries of each of the 500 keys that changed last, and the last 50 losses, of whatever keys.
/// Takes 5 MB at most. Not thread-safe.
class Timelines {
 public:
  void add(std::string_view key, TimelineEntry entry);

  /// The entries of the key that is shown like this, as a JSON array, the oldest first.
  std::string entriesOf(std::string_view shownKey, const KeyScope& scope) const;
  /// The keys that changed last, the latest first, as a JSON array of [key, entries].
  std::string latest(const KeyScope& scope) const;
  /// The losses, the latest first, as a JSON array of [key, entry].
  std::string losses(const KeyScope& scope) const;

 private:
  struct Line {
    std::string key;
    std::vector<TimelineEntry> entries;
  };

  std::list<Line> lines_;  // the latest first
  std::map<std::string_view, std::list<Line>::iterator> byKey_;
  std::deque<std::pair<std::string, TimelineEntry>> losses_;  // by key, the latest first
};

}  // namespace lockkeeper::poco
