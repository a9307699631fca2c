#include "watch/observation.h"

#include <algorithm>
#include <set>
#include <utility>

namespace lockkeeper::migration {

namespace {

using std::chrono::milliseconds;

milliseconds lasted(Instant since, Instant until) {
  return std::max(std::chrono::floor<milliseconds>(until - since), milliseconds{0});
}

}  // namespace

void Observation::measure(MigrationState& state, Instant askedAt, Instant now) {
  if (!rules_ || rules_ != state.rulesText) {
    rules_ = state.rulesText;
    rulesSince_ = now;
  }
  const milliseconds leap = state.since - std::exchange(rulesAge_, state.since);
  state.since = lasted(rulesSince_, askedAt);
  if (state.inTheWay) {
    if (inTheWay_ != state.inTheWay->stamp) {
      inTheWay_ = state.inTheWay->stamp;
      inTheWaySince_ = now;
    }
    state.inTheWay->ago = lasted(inTheWaySince_, askedAt);
  }
  measureMembers(state, leap, askedAt, now);
}

// `leap` is how far the store's clock has gone on since the last reading, if the rules are the same; if not,
// all are waited for anyway.
void Observation::measureMembers(MigrationState& state, milliseconds leap, Instant askedAt, Instant now) {
  std::set<std::string, std::less<>> present;
  for (Member& member : state.members) {
    const auto [place, isNew] = members_.try_emplace(member.id, Heard{member, now});
    if (!isNew && place->second.member.stamp != member.stamp) place->second = {member, now};
    member.silent = lasted(place->second.at, askedAt);
    present.insert(member.id);
  }
  // A record that was written since the last reading is still there, unless that clock has jumped as far.
  for (auto& [id, heard] : members_) {
    if (!present.contains(id) && leap >= heard.member.locksEndAfter - milliseconds{1}) heard.at = now;
  }
  const auto over = [](const Member& member) { return member.silent >= member.locksEndAfter; };
  std::erase_if(state.members, over);
  std::erase_if(members_, [&](const auto& entry) {
    if (present.contains(entry.first)) return false;
    Member member = entry.second.member;
    member.silent = lasted(entry.second.at, askedAt);
    const bool left = std::ranges::find(state.departedIds, member.id) != state.departedIds.end();
    if (left || over(member)) return true;
    state.members.push_back(std::move(member));
    return false;
  });
}

}  // namespace lockkeeper::migration
