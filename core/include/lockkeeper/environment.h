#pragma once

#include <memory>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/base/random.h"
#include "lockkeeper/export.h"
#include "lockkeeper/listener.h"

namespace lockkeeper {

/// What managers and drivers take from outside. Give the same one to all objects that work together, so that
/// a test or a simulation can replace it in one place. The clock and the random source must not be null.
struct LOCKKEEPER_CORE_EXPORT Environment {
  std::shared_ptr<Clock> clock = systemClock();
  std::shared_ptr<Random> random = systemRandom();
  std::shared_ptr<Listener> listener{};  ///< Null: nobody hears of events.

  /// For drivers: passes the event to the listener, if there is one, and drops what the listener throws.
  /// Blocks as long as the listener does; call it outside mutexes.
  void tell(const Event& event) const noexcept;
};

}  // namespace lockkeeper
