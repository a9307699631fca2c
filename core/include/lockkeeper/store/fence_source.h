#pragma once

#include <optional>
#include <string_view>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/export.h"

namespace lockkeeper {

/// Gives fences to a lock store that has none of its own: a counter for each key, in a place that is more
/// durable than the locks. Thread-safe. Each call is one attempt that ends by `deadline` plus one I/O timeout
/// and throws StoreUnavailable, OutcomeUnknown, ProtocolError or ConfigError, as a LockDriver does.
class LOCKKEEPER_CORE_EXPORT FenceSource {
 public:
  virtual ~FenceSource() = default;

  /// A fence for a claim that has just been granted: higher than all fences that were given for its key
  /// before. With `resend`, the claim may have been granted before: if the key's last fence was given to this
  /// claim, it is given again.
  virtual Fence next(const Claim& claim, bool resend, Instant deadline) = 0;

  /// The last fence that was given for `key`; empty when none was. For display.
  virtual std::optional<Fence> last(std::string_view key, Instant deadline) = 0;

  /// What the fences are worth.
  virtual FencePromise promise() const = 0;
};

}  // namespace lockkeeper
