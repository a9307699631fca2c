#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <tuple>
#include <vector>

#include "lockkeeper/testing/history/history.h"

namespace lockkeeper::testing::history {

/// Calls of one key, or of one row.
using Calls = std::vector<const Call*>;

/// When they were invoked, or answered: the order of calls.
inline constexpr auto invokedFirst = [](const Call* a, const Call* b) {
  return std::tie(a->invoked, a->line) < std::tie(b->invoked, b->line);
};
inline constexpr auto answeredFirst = [](const Call* a, const Call* b) {
  return std::tie(a->answered, a->line) < std::tie(b->answered, b->line);
};

/// Calls `visit` for each key with the calls of it for which `which` holds, sorted by when they were invoked.
template <class Which, class Visit>
void forEachKey(const History& history, Which which, Visit visit) {
  Calls chosen;
  for (const Call& each : history.calls()) {
    if (which(each)) chosen.push_back(&each);
  }
  std::sort(chosen.begin(), chosen.end(), [](const Call* a, const Call* b) {
    return a->key != b->key ? a->key < b->key : invokedFirst(a, b);
  });
  for (auto first = chosen.begin(); first != chosen.end();) {
    const auto last =
        std::find_if(first, chosen.end(), [&](const Call* each) { return each->key != (*first)->key; });
    visit(Calls(first, last));
    first = last;
  }
}

/// The same calls, sorted by when they were answered.
inline Calls byAnswer(Calls calls) {
  std::sort(calls.begin(), calls.end(), answeredFirst);
  return calls;
}

}  // namespace lockkeeper::testing::history
