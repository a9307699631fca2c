#include "observation.h"

#include <algorithm>
#include <set>
#include <utility>

namespace lockkeeper::migration {

namespace {

using std::chrono::milliseconds;

milliseconds lasted(Instant since, Instant now) { return std::chrono::floor<milliseconds>(now - since); }

}  // namespace

void Observation::measure(MigrationState& state, Instant now) {
  if (!rules_ || rules_ != state.rulesText) {
    rules_ = state.rulesText;
    rulesSince_ = now;
  }
  state.since = lasted(rulesSince_, now);
  if (state.inTheWay) {
    if (inTheWay_ != state.inTheWay->stamp) {
      inTheWay_ = state.inTheWay->stamp;
      inTheWaySince_ = now;
    }
    state.inTheWay->ago = lasted(inTheWaySince_, now);
  }
  measureMembers(state, now);
}

void Observation::measureMembers(MigrationState& state, Instant now) {
  std::set<std::string, std::less<>> present;
  for (Member& member : state.members) {
    const auto [place, isNew] = members_.try_emplace(member.id, Heard{member, now});
    if (!isNew && place->second.member.stamp != member.stamp) place->second = {member, now};
    member.silent = lasted(place->second.at, now);
    present.insert(member.id);
  }
  const auto over = [](const Member& member) { return member.silent >= member.locksEndAfter; };
  std::erase_if(state.members, over);
  std::erase_if(members_, [&](const auto& entry) {
    if (present.contains(entry.first)) return false;
    Member member = entry.second.member;
    member.silent = lasted(entry.second.at, now);
    const bool left = std::ranges::find(state.departedIds, member.id) != state.departedIds.end();
    if (left || over(member)) return true;
    state.members.push_back(std::move(member));
    return false;
  });
}

}  // namespace lockkeeper::migration
