#pragma once

#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "lockkeeper/driver/clock.h"

namespace lockkeeper::detail {

/// One load, and what came of it. Its members are guarded by LoadFlights until await() has returned true.
struct LoadFlight {
  std::condition_variable landed;
  bool done = false;
  std::optional<std::string> value;
  std::exception_ptr failure;  ///< Instead of a value.
};

/// The loads of this process that are under way, so that those who want the same key share one. Thread-safe.
class LoadFlights {
 public:
  explicit LoadFlights(std::shared_ptr<Clock> clock) : clock_(std::move(clock)) {}

  struct Seat {
    std::shared_ptr<LoadFlight> flight;
    bool pilot;  ///< The caller must load, and land the flight.
  };
  Seat board(std::string_view key);

  void land(std::string_view key, const std::shared_ptr<LoadFlight>& flight, std::optional<std::string> value,
            std::exception_ptr failure);

  /// True when it has landed; false when it has not until `until`.
  bool await(LoadFlight& flight, Instant until);

  /// Nobody boards the present flight any more.
  void close(std::string_view key);

 private:
  const std::shared_ptr<Clock> clock_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<LoadFlight>, std::less<>> flights_;
};

}  // namespace lockkeeper::detail
