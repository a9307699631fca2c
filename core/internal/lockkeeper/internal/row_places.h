#pragma once

#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockkeeper/base/clock.h"

namespace lockkeeper {

/// The row of a key, in a table of rate limits.
struct RowName {
  int family;  ///< 0 buckets, 1 sliding windows, 2 windows of the calendar.
  std::string_view id;

  friend auto operator<=>(const RowName&, const RowName&) = default;
};

/// Lets a few callers of this process at each row at a time. Callers beyond those would only wait in the
/// server's line for the row, and would keep all sessions from the other rows. Thread-safe.
class RowPlaces {
  using Name = std::pair<int, std::string>;

 public:
  /// `clock` must outlive this.
  RowPlaces(std::size_t atOneRow, Clock& clock) : atOneRow_(atOneRow), clock_(clock) {}

  /// A place at each of some rows, as long as it lives.
  class Guard {
   public:
    /// `rows` in order, so that no two callers wait for each other. Blocks until `deadline`; then its
    /// complete() is false.
    Guard(RowPlaces& places, const std::vector<RowName>& rows, Instant deadline) : Guard(places) {
      taken_.reserve(rows.size());
      std::unique_lock held(places_.mutex_);
      for (const RowName& each : rows) {
        Name name(each.family, std::string(each.id));
        Row& row = places_.rows_[name];
        while (row.inside == places_.atOneRow_) {
          if (places_.clock_.now() >= deadline) return;
          ++row.waiting;
          places_.clock_.wait(held, row.left, deadline);
          --row.waiting;
        }
        ++row.inside;
        taken_.push_back(std::move(name));
      }
      complete_ = true;
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard() {
      const std::lock_guard held(places_.mutex_);
      for (const Name& name : taken_) {
        const auto found = places_.rows_.find(name);
        Row& row = found->second;
        --row.inside;
        if (row.waiting > 0) {
          row.left.notify_one();
        } else if (row.inside == 0) {
          places_.rows_.erase(found);
        }
      }
    }

    bool complete() const { return complete_; }

   private:
    // So that what was taken is given back when the other constructor runs out of memory.
    explicit Guard(RowPlaces& places) : places_(places) {}

    RowPlaces& places_;
    std::vector<Name> taken_;
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
  std::map<Name, Row> rows_;  // those with somebody inside
};

}  // namespace lockkeeper
