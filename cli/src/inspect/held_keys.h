#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/watched_keys.h"
#include "lockkeeper/driver/driver.h"
#include "settings.h"

namespace lockkeeper::cli {

/// What the columns REMAINING, OWNER, FENCE and SHARE show.
std::string shownRemaining(const Holder& holder);
std::string shownOwner(const Holder& holder);
std::string shownFence(const Holder& holder);
std::string shownShare(const Holder& holder);

/// Leaves out the last column, SHARE, where nobody has less than all.
void hideShares(std::vector<std::vector<std::string>>& rows);

/// All who hold `key`, one or those who share it; none when it is free.
std::vector<Holder> holdersOf(LockDriver& driver, std::string_view key, std::chrono::nanoseconds bound);

/// The keys that are held and start with a prefix, looked up in the store that the settings name.
class HeldKeys {
 public:
  /// Throws ConfigError when the store cannot list its locks.
  HeldKeys(const Settings& settings, const std::string& prefix);

  /// By key, without the namespace; one that is shared once for each who has a share of it. Throws as
  /// Browsable::list().
  WatchedKeys::Locks look() const;

 private:
  const std::shared_ptr<LockDriver> driver_;
  const std::string prefix_;
  const std::size_t hidden_;
};

}  // namespace lockkeeper::cli
