#include "limit/rate_groups.h"

#include <utility>
#include <vector>

namespace lockkeeper::redis {

namespace {

// More than one, so that few callers do not wait for each other; few, so that many gather.
constexpr int mostUnderWay = 3;

// The server does nothing else meanwhile: a third of a millisecond.
constexpr std::size_t mostTogether = 64;

}  // namespace

struct RateGroups::Group {
  const Instant deadline;  // of the first one, who leads
  std::vector<GroupedCharge> charges;
  bool decided = false;
  std::condition_variable wakeUp;

  explicit Group(Instant latest) : deadline(latest) {}

  std::size_t add(RateCharge& charge) {
    charges.push_back({&charge, nullptr});
    return charges.size() - 1;
  }
};

RateGroups::RateGroups(Clock& clock, Call call) : clock_(clock), call_(std::move(call)) {}

// The call of a group ends by its leader's deadline: it may not be later than the caller's, and must leave
// him at least half of his time.
bool RateGroups::mayJoin(const Group& group, Instant deadline) const {
  const Instant now = clock_.now();
  return group.deadline <= deadline && group.deadline - now >= (deadline - now) / 2;
}

void RateGroups::decide(RateCharge& charge, Instant deadline) {
  std::unique_lock held(mutex_);
  const bool joins = gathering_ && mayJoin(*gathering_, deadline);
  const auto group = joins ? gathering_ : std::make_shared<Group>(deadline);
  const std::size_t place = group->add(charge);
  if (!joins) {
    lead(held, group);
  } else {
    if (group->charges.size() == mostTogether) gathering_.reset();
    while (!group->decided) clock_.wait(held, group->wakeUp, Instant::max());
  }
  if (const auto& failure = group->charges[place].failure) std::rethrow_exception(failure);
}

void RateGroups::lead(std::unique_lock<std::mutex>& held, const std::shared_ptr<Group>& group) {
  // Half of the time is left for the call, of the leader's and so of everybody's.
  const Instant started = clock_.now();
  const Instant latest = started + (group->deadline - started) / 2;
  while (underWay_ >= mostUnderWay && clock_.now() < latest) {
    // Others should join who has most time.
    const bool gathers = !gathering_ || gathering_->deadline < group->deadline;
    if (gathers && group->charges.size() < mostTogether) gathering_ = group;
    clock_.wait(held, callEnded_, latest);
  }
  if (gathering_ == group) gathering_.reset();
  ++underWay_;
  held.unlock();
  try {
    call_(group->charges, group->deadline);
  } catch (...) {
    for (GroupedCharge& each : group->charges) each.failure = std::current_exception();
  }
  held.lock();
  --underWay_;
  group->decided = true;
  held.unlock();
  callEnded_.notify_one();
  if (group->charges.size() > 1) group->wakeUp.notify_all();
}

}  // namespace lockkeeper::redis
