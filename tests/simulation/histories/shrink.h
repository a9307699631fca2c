#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "simulation/machine/chance.h"

namespace lockkeeper::simulation {

/// The events that have happened, by kind.
using Happened = std::array<std::vector<std::uint32_t>, eventKinds>;

/// Finds few events with which a history still fails. `fails` runs it with these events only, and says
/// whether it failed. Runs it `most` times at most.
inline Kept shrink(const Happened& all, const std::function<bool(const Kept&)>& fails, int most = 300) {
  Kept kept;
  const auto keep = [](const std::vector<std::uint32_t>& numbers) {
    return std::make_shared<const std::set<std::uint32_t>>(numbers.begin(), numbers.end());
  };
  std::transform(all.begin(), all.end(), kept.begin(), keep);
  for (auto& its : kept) {
    for (std::size_t length = its->size(); length > 0; length /= 2) {
      for (std::size_t first = 0; first < its->size() && most > 0;) {
        std::vector<std::uint32_t> rest(its->begin(), its->end());
        const auto from = rest.begin() + static_cast<std::ptrdiff_t>(first);
        rest.erase(from, from + static_cast<std::ptrdiff_t>(std::min(length, rest.size() - first)));
        const auto before = std::exchange(its, keep(rest));
        --most;
        if (!fails(kept)) {
          its = before;
          first += length;
        }
      }
    }
  }
  return kept;
}

}  // namespace lockkeeper::simulation
