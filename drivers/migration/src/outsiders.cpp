#include "outsiders.h"

namespace lockkeeper::migration {

std::optional<std::string> outsiderIn(LockDriver& oldStore, const MigrationState& state, const Rules& target,
                                      Instant deadline) {
  auto* browsable = capability<Browsable>(oldStore);
  if (browsable == nullptr || !target.mentions(Phase::modern)) return std::nullopt;
  std::optional<std::string> found;
  browsable->listBusy(
      "",
      [&](std::string_view key, const Holder& holder) {
        const bool outsider = holder.owner.empty() || !state.knows(holder.owner);
        const bool leaves =
            target.phaseOf(key) == Phase::modern && state.current.phaseOf(key) != Phase::modern;
        if (outsider && leaves) found = key;
        return !found;
      },
      deadline);
  return found;
}

}  // namespace lockkeeper::migration
