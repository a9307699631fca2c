#include "text/log_throttle.h"

#include <utility>

namespace lockkeeper::poco {

namespace {

constexpr std::size_t mostOfPeriod = 10;
constexpr std::chrono::seconds period{10};

}  // namespace

std::optional<std::size_t> LogThrottle::admit(std::string_view kind, Instant now, std::size_t before) {
  const std::lock_guard held(mutex_);
  auto found = kinds_.find(kind);
  if (found == kinds_.end()) found = kinds_.emplace(kind, Kind()).first;
  Kind& its = found->second;
  its.leftOut += before;
  if (now >= its.periodEnds) {
    its.periodEnds = saturatingAdd(now, period);
    its.logged = 0;
  }
  if (its.logged == mostOfPeriod) {
    ++its.leftOut;
    return std::nullopt;
  }
  ++its.logged;
  return std::exchange(its.leftOut, 0);
}

std::string leftOutText(std::size_t lines) {
  return lines == 0 ? "" : ", and " + std::to_string(lines) + " like it were left out";
}

}  // namespace lockkeeper::poco
