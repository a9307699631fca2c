#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "command_settings.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/internal/lock_observer.h"

namespace lockkeeper::cli {

/// What the columns show.
std::string shownRemaining(const Holder& holder);
std::string shownOwner(const Holder& holder);
std::string shownFence(const Holder& holder);

std::string shownShare(const std::optional<Share>& share);
std::string shownWaiting(const std::optional<std::size_t>& waiting);

/// Leaves out the columns WAITING, where nobody waits, TURNS, where no key has changed hands, and SHARE,
/// where nobody has or wants less than all.
void hideUsual(std::vector<std::vector<std::string>>& rows);

/// The keys that are held and start with a prefix, in the store that the settings name.
class HeldKeys {
 public:
  HeldKeys(const Settings& settings, const std::string& prefix);

  /// Throws as listLocks().
  LockListing look() const;

  /// The key without the namespace.
  std::string nameOf(const std::string& key) const { return key.substr(hidden_); }

 private:
  std::shared_ptr<LockDriver> driver_;
  std::string prefix_;
  std::size_t hidden_;
};

}  // namespace lockkeeper::cli
