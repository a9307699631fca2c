#include "overlaps.h"

#include <algorithm>
#include <sstream>

namespace lockkeeper::test {

std::vector<Hold> holdsIn(const std::string& output) {
  std::vector<Hold> holds;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (what == "granted") {
      Hold hold;
      words >> hold.key >> hold.asked >> hold.granted;
      holds.push_back(hold);
    } else if (what == "wrote") {
      Hold::Write write;
      words >> write.asOf >> write.result;
      holds.back().writes.push_back(write);
    } else if (what == "ends") {
      words >> holds.back().ends;
    } else if (what == "released") {
      words >> what;
      holds.back().lost = what == "lost";
    }
  }
  return holds;
}

namespace {

/// Whether the key was certainly granted to `other` after it was granted to `mine`, and before `until`.
bool displaces(const Hold& other, const Hold& mine, std::int64_t until) {
  return other.key == mine.key && other.asked > mine.granted && other.granted < until;
}

void judge(const Hold& mine, const std::vector<Hold>& all, Overlaps& result) {
  const auto displacedBy = [&](std::int64_t until) {
    return std::any_of(all.begin(), all.end(),
                       [&](const Hold& other) { return displaces(other, mine, until); });
  };
  if (!displacedBy(mine.ends)) return;
  ++result.displaced;
  if (!mine.lost) ++result.untold;
  for (const Hold::Write& write : mine.writes) {
    if (write.result != "accepted") ++result.refused;
    if (write.result == "accepted" && displacedBy(write.asOf)) ++result.violations;
  }
}

}  // namespace

Overlaps overlapsOf(const std::vector<Hold>& legacy, const std::vector<Hold>& ours) {
  std::vector<Hold> all = legacy;
  all.insert(all.end(), ours.begin(), ours.end());
  Overlaps result;
  for (const Hold& mine : ours) judge(mine, all, result);
  for (const Hold& theirs : legacy) {
    const bool outlasted = std::any_of(
        ours.begin(), ours.end(), [&](const Hold& mine) { return displaces(mine, theirs, theirs.ends); });
    if (outlasted) ++result.outlasted;
  }
  return result;
}

}  // namespace lockkeeper::test
