#include "lockkeeper/leader_election.h"

#include <new>
#include <utility>

#include "schedule/candidate.h"

namespace lockkeeper {

LeaderElection::LeaderElection(std::shared_ptr<LockManager> manager, ElectionOptions options,
                               ElectionHooks hooks)
    : candidate_(
          std::make_shared<detail::Candidate>(std::move(manager), std::move(options), std::move(hooks))) {
  candidate_->start();
}

LeaderElection::~LeaderElection() {
  if (candidate_->inherited()) {
    // The thread is not here, and its mutex may be held for ever: leave all of it untouched.
    new (std::nothrow) auto(candidate_);
    return;
  }
  candidate_->stop();
}

bool LeaderElection::isLeader() const { return !candidate_->inherited() && candidate_->leads(); }

std::optional<Fence> LeaderElection::fence() const {
  return candidate_->inherited() ? std::nullopt : candidate_->fence();
}

bool LeaderElection::resign(std::chrono::milliseconds pause) {
  const auto candidate = candidate_;  // What hooks into Term::ended may destroy this object meanwhile.
  return !candidate->inherited() && candidate->resign(pause);
}

}  // namespace lockkeeper
