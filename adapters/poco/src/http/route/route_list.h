#pragma once

#include <algorithm>
#include <cstddef>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "http/route/route_pattern.h"
#include "lockkeeper/error.h"

namespace lockkeeper::poco {

// Lists of routes: whatever has a `name` and a `pattern`.

/// The most specific route that matches, or null.
template <class Route>
const Route* findRoute(const std::vector<Route>& routes, std::string_view method,
                       const std::vector<std::string>& path) {
  const auto found =
      std::ranges::find_if(routes, [&](const Route& route) { return route.pattern.matches(method, path); });
  return found == routes.end() ? nullptr : &*found;
}

/// Throws std::invalid_argument for a route that can never decide, because others decide all that it matches.
template <class Route>
void refuseHiddenRoutes(const std::vector<Route>& routes) {
  std::size_t longest = 0;
  for (const Route& route : routes) longest = std::max(longest, route.pattern.segments());
  for (const Route& route : routes) {
    std::set<std::string> others;
    for (const auto& [method, path] : route.pattern.loneliest(longest + 1)) {
      others.insert(lockkeeper::quoted(findRoute(routes, method, path)->name));
    }
    if (others.contains(lockkeeper::quoted(route.name))) continue;
    std::string names;
    for (const std::string& other : others) names += (names.empty() ? "" : " and ") + other;
    throw std::invalid_argument("no request can match the route " + lockkeeper::quoted(route.name) +
                                ": what it would match goes to " + names);
  }
}

/// Puts the route that decides before the others that match the same request. Throws as refuseHiddenRoutes().
template <class Route>
void sortRoutes(std::vector<Route>& routes) {
  std::ranges::sort(routes,
                    [](const Route& left, const Route& right) { return left.pattern.before(right.pattern); });
  refuseHiddenRoutes(routes);
}

}  // namespace lockkeeper::poco
