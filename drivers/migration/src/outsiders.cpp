#include "outsiders.h"

#include "lockkeeper/driver/inspection.h"

namespace lockkeeper::migration {

bool leavesOldStore(std::string_view key, const MigrationState& state, const Rules& target) {
  return target.phaseOf(key) == Phase::modern && state.current.phaseOf(key) != Phase::modern;
}

std::vector<OldLock> outsidersIn(LockDriver& oldStore, const MigrationState& state, const Rules& target,
                                 Instant deadline) {
  auto* browsable = capability<Browsable>(oldStore);
  if (browsable == nullptr || !target.mentions(Phase::modern)) return {};
  std::vector<OldLock> found;
  browsable->listBusy(
      "",
      [&](std::string_view key, const Holder& holder) {
        const bool outsider = holder.owner.empty() || !state.knows(holder.owner);
        if (outsider && leavesOldStore(key, state, target)) found.push_back({std::string(key), holder.owner});
        return found.size() < mostOutsiders;
      },
      deadline);
  return found;
}

}  // namespace lockkeeper::migration
