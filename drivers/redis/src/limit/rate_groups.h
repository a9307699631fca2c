#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>

#include "lockkeeper/driver/rate_driver.h"

namespace lockkeeper::redis {

/// A charge that is asked for together with others that have nothing to do with it.
struct GroupedCharge {
  RateCharge* charge;
  std::exception_ptr failure;  ///< Why there is no outcome.
};

/// Group commit: callers that come while enough calls are under way gather, and the first of them calls for
/// all. Where few come, nobody waits for anybody. No thread of its own. Thread-safe.
class RateGroups {
 public:
  /// Decides each charge by itself, or says why not; throws when none was decided.
  using Call = std::function<void(std::span<GroupedCharge> group, Instant deadline)>;

  RateGroups(Clock& clock, Call call);

  /// Has `charge` decided. The call for it ends by `deadline`, and has at least half of the time until then,
  /// whoever makes it. Blocks until `deadline` plus one I/O timeout; throws what `call` says about this
  /// charge.
  void decide(RateCharge& charge, Instant deadline);

 private:
  struct Group;

  bool mayJoin(const Group& group, Instant deadline) const;
  void lead(std::unique_lock<std::mutex>& held, const std::shared_ptr<Group>& group);

  Clock& clock_;
  const Call call_;

  std::mutex mutex_;
  int underWay_ = 0;
  std::condition_variable callEnded_;
  std::shared_ptr<Group> gathering_;  // until there is room for one more call
};

}  // namespace lockkeeper::redis
