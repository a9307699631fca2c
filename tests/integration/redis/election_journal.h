#pragma once

#include <chrono>
#include <sstream>
#include <string>
#include <vector>

#include "journal.h"
#include "lockkeeper/base/clock.h"
#include "lockkeeper/driver/driver.h"

namespace lockkeeper::test {

inline constexpr std::chrono::milliseconds electionTtl{2000};

/// One line of the journal that all candidates write. Boot time is the same for all processes.
struct LeadershipEvent {
  std::string what;
  std::string who;
  Fence fence{};
  Instant when{};

  std::string line() const {
    return what + " " + who + " " + std::to_string(fence) + " " +
           std::to_string(when.time_since_epoch().count());
  }

  static std::vector<LeadershipEvent> all(const Journal& journal) {
    std::vector<LeadershipEvent> events;
    for (const std::string& line : journal.lines()) {
      std::istringstream words(line);
      LeadershipEvent event;
      std::int64_t when = 0;
      words >> event.what >> event.who >> event.fence >> when;
      event.when = Instant(std::chrono::nanoseconds(when));
      events.push_back(event);
    }
    return events;
  }
};

}  // namespace lockkeeper::test
