#include "lock/node/claims_under_way.h"

#include <utility>

#include "lock/ordered_claims.h"

namespace lockkeeper::redis {

ClaimsUnderWay::ClaimsUnderWay(LockNode& node, std::vector<std::vector<AcquireRequest>> groups)
    : node_(node),
      groups_(std::move(groups)),
      deadline_(groups_.front().front().deadline),
      wire_(node_.requests.take()) {
  node_.startScripts(*wire_, deadline_, fill());
  sent_ = true;
}

ClaimsUnderWay::~ClaimsUnderWay() {
  if (!sent_) return;
  try {
    node_.finishScripts(*wire_, node_.clock().now(), fill());
  } catch (const std::exception&) {
    // Nobody wants to know.
  }
}

std::vector<ClaimsUnderWay::Outcome> ClaimsUnderWay::await() {
  sent_ = false;
  node_.finishScripts(*wire_, deadline_, fill());
  std::vector<Outcome> outcomes(groups_.size());
  std::vector<AcquireRequest> granted;
  for (std::size_t index = 0; index < groups_.size(); ++index) {
    try {
      outcomes[index].results = orderedResults(node_, *wire_, wire_->reply(index), groups_[index]);
      const auto some = grantedOf(groups_[index], outcomes[index].results);
      granted.insert(granted.end(), some.begin(), some.end());
    } catch (const std::exception&) {
      outcomes[index].failure = std::current_exception();
    }
  }
  try {
    node_.checkReplicas(granted, *wire_);
  } catch (const std::exception&) {
    for (Outcome& each : outcomes) {
      if (!each.failure) each = {.results = {}, .failure = std::current_exception()};
    }
  }
  return outcomes;
}

std::function<void(Request& call, Script::By by)> ClaimsUnderWay::fill() const {
  return [this](Request& call, Script::By by) {
    for (const auto& group : groups_) addOrderedClaims(call, by, node_.options(), group);
  };
}

}  // namespace lockkeeper::redis
