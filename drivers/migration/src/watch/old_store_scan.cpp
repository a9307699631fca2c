#include "watch/old_store_scan.h"

#include <algorithm>

#include "lockkeeper/driver/inspection.h"

namespace lockkeeper::migration {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds::rep pagesPerSecond = 100;
constexpr milliseconds::rep readsPerSecond = 1000;

}  // namespace

bool leavesOldStore(std::string_view key, const MigrationState& state) {
  return state.target.phaseOf(key) == Phase::modern && state.current.phaseOf(key) != Phase::modern;
}

void OldStoreScan::begin(const MigrationState& state) {
  if (place_.version != state.version) {
    place_ = {state.version, {}};
    if (state.scan && state.scan->version == state.version) place_ = *state.scan;
    whole_ = false;
  }
  if (place_.next.empty()) whole_ = true;
  underWay_ = true;
}

std::vector<OldLock> OldStoreScan::goOn(const MigrationState& state, Instant deadline) {
  std::vector<OldLock> found;
  auto* browsable = capability<Browsable>(*oldStore_);
  if (browsable == nullptr) underWay_ = false;
  const Instant now = clock_->now();
  const Instant until = std::min(deadline, now + heartbeat_ / 2);
  const bool rested = now >= lastAt_ + std::chrono::seconds{1};
  const milliseconds rest =
      rested ? std::chrono::seconds{1} : std::chrono::floor<milliseconds>(now - lastAt_);
  auto pages = pagesPerSecond * rest.count() / 1000;
  auto reads = readsPerSecond * rest.count() / 1000;
  if (pages > 0) lastAt_ = now;
  const auto wanted = [&](std::string_view key) {
    const bool leaves = leavesOldStore(key, state);
    if (leaves) --reads;
    return leaves;
  };
  const auto visit = [&](std::string_view key, const Holder& holder) {
    if (holder.owner.empty() || !state.knows(holder.owner)) found.push_back({std::string(key), holder.owner});
    return found.size() < mostOutsiders;
  };
  // Not behind a page with a find: a page that fails must not take it away.
  while (underWay_ && pages > 0 && reads > 0 && found.empty()) {
    place_.next = browsable->listBusy(place_.next, wanted, visit, deadline);
    --pages;
    underWay_ = !place_.next.empty();
    if (clock_->now() >= until) break;
  }
  return found;
}

}  // namespace lockkeeper::migration
