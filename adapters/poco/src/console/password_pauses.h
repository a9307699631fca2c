#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

#include "lockkeeper/base/clock.h"

namespace lockkeeper::poco {

/// Slows down those who try passwords. Of each machine, one password is looked at at a time, and after a
/// wrong one none for a second. It remembers 1,024 machines at a time; all others together count as one, or
/// whoever has so many addresses could try as fast as he likes. Thread-safe.
class PasswordPauses {
 public:
  /// False while the last password of this machine was wrong a moment ago, or is still being looked at.
  bool mayTry(const std::string& peer, Instant now);
  /// Ends the pause of a machine that may try.
  void wasRight(const std::string& peer);

  static constexpr std::chrono::seconds afterWrong{1};
  static constexpr std::size_t mostPeers = 1024;

 private:
  std::mutex mutex_;
  std::map<std::string, Instant> ends_;  // by machine; "" is all that are too many
};

}  // namespace lockkeeper::poco
