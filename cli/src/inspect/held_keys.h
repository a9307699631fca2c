#pragma once

#include <memory>
#include <string>

#include "inspect/watched_keys.h"
#include "lockkeeper/driver/driver.h"
#include "settings.h"

namespace lockkeeper::cli {

/// What the columns REMAINING, OWNER and FENCE show.
std::string shownRemaining(const Holder& holder);
std::string shownOwner(const Holder& holder);
std::string shownFence(const Holder& holder);

/// The keys that are held and start with a prefix, looked up in the store that the settings name.
class HeldKeys {
 public:
  /// Throws ConfigError when the store cannot list its locks.
  HeldKeys(const Settings& settings, const std::string& prefix);

  /// By key, without the namespace. Throws as Browsable::list().
  WatchedKeys::Locks look() const;

 private:
  const std::shared_ptr<LockDriver> driver_;
  const std::string prefix_;
  const std::size_t hidden_;
};

}  // namespace lockkeeper::cli
