#include <algorithm>
#include <span>

#include "lockkeeper/error.h"
#include "lockkeeper/migration/state_store.h"

namespace lockkeeper::migration {

namespace {

using std::chrono::milliseconds;

/// Whether `rules` put all keys of `rule` into modern. `excepted` are rules whose keys do not matter.
bool areModern(const Rule& rule, const Rules& rules, std::span<const Rule> excepted) {
  for (const Rule& each : rules.rules()) {
    const auto coversEach = [&](const Rule& exception) { return exception.covers(each); };
    if (each.phase != Phase::modern && std::ranges::none_of(excepted, coversEach)) return false;
    if (each.phase == Phase::modern && each.covers(rule)) return true;
  }
  return false;
}

std::optional<std::string> whatBlocks(const Member& member, const MigrationState& state) {
  const bool silent = member.silent > member.lease;
  const std::string who = member.name() + (silent ? ", which has fallen silent," : "");
  if (member.version != state.version) return who + " does not go by the present rules yet";
  if (!member.drained) return who + " still holds locks in the phase that is left";
  return std::nullopt;
}

}  // namespace

bool keysLeaveOldStore(const Rules& from, const Rules& to) {
  const std::span<const Rule> rules = to.rules();
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i].phase == Phase::modern && !areModern(rules[i], from, rules.first(i))) return true;
  }
  return false;
}

std::vector<Blocker> blockersOf(const MigrationState& state, milliseconds observation) {
  std::vector<Blocker> found;
  milliseconds locksEndAfter{0};
  for (const Member& member : state.members) {
    locksEndAfter = std::max(locksEndAfter, member.locksEndAfter);
    const auto what = whatBlocks(member, state);
    if (!what) continue;
    // A silent member's record disappears when none of its locks can live any more.
    const bool silent = member.silent > member.lease;
    found.push_back({*what, silent ? std::optional(member.locksEndAfter - member.silent) : std::nullopt});
  }
  if (state.since < locksEndAfter) {
    found.push_back(
        {"locks that were taken before the last change may still live", locksEndAfter - state.since});
  }
  if (!keysLeaveOldStore(state.current, state.target)) return found;
  if (state.since < observation) {
    found.push_back({"the old store has not been watched for long enough", observation - state.since});
  }
  if (state.inTheWay && state.inTheWay->ago < observation) {
    found.push_back({"a holder that is no member was seen in the old store, of " +
                         quoted(state.inTheWay->key) +
                         ": stop it, or delete the key if what it holds is no lock; then nobody may be seen",
                     observation - state.inTheWay->ago});
  }
  return found;
}

}  // namespace lockkeeper::migration
