#pragma once

#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "limit/rate_statements.h"
#include "lockkeeper/base/clock.h"

namespace lockkeeper::mysql {

/// Lets a few callers of this process at each row at a time. Callers beyond those would only wait in the
/// server's line for the row, and would keep all sessions from the other rows. Thread-safe.
class RowPlaces {
 public:
  /// `clock` must outlive this.
  RowPlaces(std::size_t atOneRow, Clock& clock) : atOneRow_(atOneRow), clock_(clock) {}

  /// A place at each of some rows, as long as it lives.
  class Guard {
   public:
    /// `rows` in order, so that no two callers wait for each other. Blocks until `deadline`; then its
    /// complete() is false.
    Guard(RowPlaces& places, const std::vector<rates::RowName>& rows, Instant deadline);
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard();

    bool complete() const { return complete_; }

   private:
    explicit Guard(RowPlaces& places) : places_(places) {}

    RowPlaces& places_;
    std::vector<std::pair<int, std::string>> taken_;
    bool complete_ = false;
  };

 private:
  struct Row {
    std::size_t inside = 0;
    std::size_t waiting = 0;
    std::condition_variable left;
  };

  const std::size_t atOneRow_;
  Clock& clock_;
  std::mutex mutex_;
  std::map<std::pair<int, std::string>, Row> rows_;  // those with somebody inside
};

}  // namespace lockkeeper::mysql
