#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockkeeper::test {

/// One lock that a worker held, as row_worker.cpp and row_worker.php print it. Times are nanoseconds of one
/// clock.
struct Hold {
  struct Write {
    std::int64_t asOf;
    std::string result;
  };
  std::string key;
  std::int64_t asked = 0;
  std::int64_t granted = 0;
  std::int64_t ends = 0;
  bool lost = false;  ///< The holder was told so, at the release at the latest.
  std::vector<Write> writes;
};

/// The holds in what a worker has printed.
std::vector<Hold> holdsIn(const std::string& output);

/// What a run of workers has shown of our holders.
struct Overlaps {
  int displaced = 0;   ///< Holders of ours during whose hold the key was certainly granted to another.
  int untold = 0;      ///< Those of them that were never told.
  int violations = 0;  ///< Their writes that were accepted although verified after that other grant.
  int refused = 0;     ///< Their writes that were not accepted.
  int outlasted = 0;   ///< Legacy holders from whom we took the key over, because it had expired, while they
                       ///< were still at work.
};
Overlaps overlapsOf(const std::vector<Hold>& legacy, const std::vector<Hold>& ours);

}  // namespace lockkeeper::test
