#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "lockkeeper/error.h"
#include "lockkeeper/key.h"
#include "route_pattern.h"

namespace lockkeeper::poco {

// Lists of routes: whatever has a `name` and a `pattern`.

/// Puts the route that decides before the others that match the same request. Throws ConfigError for two that
/// match the same requests.
template <class Route>
void sortRoutes(std::vector<Route>& routes) {
  std::ranges::sort(routes,
                    [](const Route& left, const Route& right) { return left.pattern.before(right.pattern); });
  const auto twins = std::ranges::adjacent_find(
      routes, [](const Route& left, const Route& right) { return left.pattern.equivalent(right.pattern); });
  if (twins == routes.end()) return;
  throw ConfigError("no request can match the route " + quoted(std::next(twins)->name) + ": " +
                    quoted(twins->name) + " matches the same ones");
}

/// The most specific route that matches, or null.
template <class Route>
const Route* findRoute(const std::vector<Route>& routes, std::string_view method,
                       const std::vector<std::string>& path) {
  const auto found =
      std::ranges::find_if(routes, [&](const Route& route) { return route.pattern.matches(method, path); });
  return found == routes.end() ? nullptr : &*found;
}

}  // namespace lockkeeper::poco
