#include "cluster/spread_claims.h"

#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "lock/node/claims_under_way.h"
#include "store/companion_key.h"

namespace lockkeeper::redis {

/// The keys of one master, by slot.
struct SpreadClaims::Group {
  std::vector<std::vector<std::size_t>> slots{};  // the indexes of its requests
  std::shared_ptr<LockNode> node{};               // lives as long as what is under way there
  std::unique_ptr<ClaimsUnderWay> underWay{};
};

/// Counts the releases that the store has answered.
class SpreadClaims::Releases final : public PostListener {
 public:
  void answered(ReleaseOutcome /*outcome*/) noexcept override { note(true); }
  void failed(ErrorCode /*code*/, std::string_view /*text*/) noexcept override { note(false); }

  /// Whether all `number` were answered. Another thread may have read the last reply, and still be telling.
  bool all(std::size_t number, Clock& clock, Instant deadline) {
    std::unique_lock held(mutex_);
    while (count_ < number && !failed_ && clock.now() < deadline) clock.wait(held, told_, deadline);
    return count_ >= number;
  }

 private:
  void note(bool answered) noexcept {
    {
      const std::lock_guard held(mutex_);
      count_ += answered ? 1 : 0;
      failed_ = failed_ || !answered;
    }
    told_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable told_;
  std::size_t count_ = 0;
  bool failed_ = false;
};

std::vector<AcquireResult> SpreadClaims::acquire(std::span<const AcquireRequest> requests) {
  std::vector<std::optional<AcquireResult>> outcomes(requests.size());
  std::exception_ptr failure;
  const auto note = [&](const std::exception_ptr& each) {
    try {
      std::rethrow_exception(each);
    } catch (const StoreUnavailable&) {
      // Nothing was granted there.
    } catch (const WithdrawalUnknown&) {
      failure = each;  // it says the most
    } catch (...) {
      if (!failure) failure = each;
    }
  };
  for (Group& group : send(requests)) {
    try {
      const auto told = group.underWay->await();
      for (std::size_t slot = 0; slot < told.size(); ++slot) {
        if (told[slot].failure) note(told[slot].failure);
        for (std::size_t i = 0; i < told[slot].results.size(); ++i)
          outcomes[group.slots[slot][i]] = told[slot].results[i];
      }
    } catch (const std::exception&) {
      note(std::current_exception());
    }
  }
  if (failure) std::rethrow_exception(failure);
  std::vector<AcquireResult> results;
  while (results.size() < requests.size() && outcomes[results.size()]) {
    results.push_back(*outcomes[results.size()]);
    if (std::holds_alternative<Busy>(results.back())) break;
  }
  std::vector<Claim> outOfOrder;
  for (std::size_t i = results.size(); i < requests.size(); ++i) {
    if (outcomes[i] && std::holds_alternative<Granted>(*outcomes[i])) outOfOrder.push_back(requests[i].claim);
  }
  release(outOfOrder);
  return results;
}

std::vector<SpreadClaims::Group> SpreadClaims::send(std::span<const AcquireRequest> requests) {
  std::map<NodeAddress, std::map<std::uint16_t, std::vector<std::size_t>>> masters;
  std::vector<Group> sent;
  try {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const std::uint16_t slot = hashSlot(requests[i].claim.key);
      masters[map_.route(slot, requests[i].deadline).master][slot].push_back(i);
    }
  } catch (const StoreUnavailable&) {
    return sent;
  }
  for (auto& [master, slots] : masters) {
    Group group{.node = nodes_.of(master, false)};
    std::vector<std::vector<AcquireRequest>> claims;
    for (auto& [slot, indexes] : slots) {
      auto& own = claims.emplace_back();
      for (const std::size_t i : indexes) own.push_back(requests[i]);
      group.slots.push_back(std::move(indexes));
    }
    try {
      group.underWay = group.node->sendInOrder(std::move(claims));
      sent.push_back(std::move(group));
    } catch (const StoreUnavailable&) {
      // Nothing was sent to it.
    }
  }
  return sent;
}

void SpreadClaims::release(std::span<const Claim> claims) {
  if (claims.empty()) return;
  const Instant deadline = saturatingAdd(clock_.now(), ioTimeout_);
  const auto releases = std::make_shared<Releases>();
  std::set<const LockNode*> asked;
  try {
    for (const Claim& each : claims) {
      const bool posted = nodes_.post(each.key, [&](LockNode& node) {
        asked.insert(&node);
        return node.postRelease(each, releases);
      });
      if (posted) continue;
      nodes_.at(each.key, deadline, [&](LockNode& node) { (void)node.release(each, deadline); });
      releases->answered(ReleaseOutcome::released);
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::config) throw;
    throw WithdrawalUnknown(std::string(error.what()) + "; keys behind a busy one were not given back");
  }
  for (const auto& node : nodes_.perhapsPosted()) {
    if (asked.contains(node.get())) node->awaitPosted(deadline);
  }
  if (!releases->all(claims.size(), clock_, deadline)) {
    throw WithdrawalUnknown(map_.name() + ": it is not known whether keys behind a busy one were given back");
  }
}

}  // namespace lockkeeper::redis
