#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "lockkeeper/error.h"
#include "lockkeeper/poco/metric_family.h"

namespace lockkeeper::poco {

inline MetricLabel label(std::string_view name, std::string_view value) {
  return {name, printable(value, 256)};
}

/// Counts by the value of a label. Values come from the configuration and are few: there is room for 256, and
/// later ones share a place. Not thread-safe.
template <class Counts>
class Labelled {
 public:
  Counts& of(std::string_view value) {
    constexpr std::size_t room = 256;
    if (const auto known = counts_.find(value); known != counts_.end()) return known->second;
    return counts_[std::string(counts_.size() < room ? value : "(others)")];
  }

  const std::map<std::string, Counts, std::less<>>& all() const noexcept { return counts_; }

 private:
  std::map<std::string, Counts, std::less<>> counts_;
};

}  // namespace lockkeeper::poco
