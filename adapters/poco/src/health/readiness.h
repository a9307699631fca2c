#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/poco/health_handler.h"

namespace lockkeeper::poco {

/// Asks the parts of a process whether they are up. Thread-safe.
class Readiness {
 public:
  /// How long a result counts.
  static constexpr std::chrono::seconds fresh{1};

  struct Part {
    std::string name;
    std::function<void()> ask;  ///< Bounded; throws when the store does not answer.
    bool up = true;             ///< At the last probe.
  };
  struct Result {
    bool ready = true;
    std::vector<std::pair<std::string, bool>> parts{};  ///< Whether each is up.
    std::size_t suspectLocks = 0;
  };

  /// Throws std::invalid_argument when all parts are null.
  explicit Readiness(const HealthParts& parts);

  /// The last result, if it is fresh; else that of a probe. Blocks for the probe, also for another caller's.
  Result get();

 private:
  Result probe();

  std::shared_ptr<Clock> clock_;
  std::function<std::size_t()> suspectLocks_;
  std::mutex mutex_;
  std::vector<Part> parts_;
  std::optional<Result> last_;
  Instant probedAt_{};
};

}  // namespace lockkeeper::poco
