#pragma once

#include <exception>
#include <functional>
#include <vector>

#include "lock/node/lock_node.h"

namespace lockkeeper::redis {

/// Claims that were sent to a node, in groups of keys of one slot. Its end does
/// not wait for their outcome.
class ClaimsUnderWay {
 public:
  /// Sends them. Throws when nothing was sent. `node` must outlive it.
  ClaimsUnderWay(LockNode& node, std::vector<std::vector<AcquireRequest>> groups);
  ClaimsUnderWay(const ClaimsUnderWay&) = delete;
  ClaimsUnderWay& operator=(const ClaimsUnderWay&) = delete;
  ~ClaimsUnderWay();

  /// What Batchable::acquireInOrder() returns or throws for one group.
  struct Outcome {
    std::vector<AcquireResult> results{};
    std::exception_ptr failure{};
  };

  /// Waits for the outcome of each group. Once.
  std::vector<Outcome> await();

 private:
  std::function<void(Request& call, Script::By by)> fill() const;

  LockNode& node_;
  const std::vector<std::vector<AcquireRequest>> groups_;
  const Instant deadline_;
  const RequestPool::Loan wire_;  // it outlives this while the server may still answer
  bool sent_ = false;
};

}  // namespace lockkeeper::redis
