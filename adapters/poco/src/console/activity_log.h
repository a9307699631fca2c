#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "console/json.h"
#include "console/lately.h"
#include "console/timelines.h"
#include "lockkeeper/listener.h"
#include "metrics/labelled.h"

namespace lockkeeper::poco {

/// What RecentActivity remembers. Thread-safe.
class ActivityLog {
 public:
  void on(const Event& event);

  /// As a JSON object, with the timeline of the key that is shown like this, if there is one.
  std::string json(const KeyScope& scope, std::string_view shownKey, Instant now) const;

 private:
  struct Waits {
    Lately milliseconds, calls, unserved;
  };
  struct Limit {
    Lately allowed, refused, inOutage;
    std::optional<Instant> lastRefusal{};
  };
  struct Task {
    std::optional<Instant> lastRun{}, next{};
    const char* outcome = "";  ///< Of the last run.
    std::string text{};
    std::uint64_t runs = 0, skips = 0, missed = 0;
  };
  struct Election {
    bool leads = false;
    Instant since{};
    std::uint64_t terms = 0;
  };
  struct Migration {
    std::string rules{};
    Instant since{};
  };
  struct Store {
    bool up = true;
    Instant since{};  ///< Of the last failure, or of the answer after it.
    std::string text{};
    Lately failures;
  };

  void addEntry(const Event& event, std::string_view what, std::string detail, bool timed);
  void countWait(const Event& event);
  void countDecision(const Event& event);
  void countTask(const Event& event);
  void countStore(const Event& event);
  std::string hottest(const KeyScope& scope, Instant now) const;
  std::string limits(Instant now) const;
  std::string tasks() const;
  std::string elections() const;
  std::string migrations() const;
  std::string stores(Instant now) const;

  mutable std::mutex mutex_;
  Timelines timelines_;
  std::map<std::string, Waits, std::less<>> waits_;  // by key
  Labelled<Limit> limits_;
  Labelled<Task> tasks_;
  Labelled<Election> elections_;
  Labelled<Migration> migrations_;
  Labelled<Store> stores_;
};

}  // namespace lockkeeper::poco
