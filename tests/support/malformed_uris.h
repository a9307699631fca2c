#pragma once

#include <array>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace lockkeeper::test {

/// A text that no message may repeat.
inline constexpr const char* uriMarker = "tops3cret";

enum class MarkedPart {
  any,       ///< User, password, host, port or path.
  password,  ///< And nothing is left out, so that it can be told from a host.
};

/// URIs of `scheme` with the marker in one of their parts, most of them written wrongly: there are bytes that
/// mean something, and some are left out. The same each time.
inline std::vector<std::string> malformedUris(std::size_t count, MarkedPart part,
                                              std::string_view scheme = "redis") {
  std::mt19937 random(20251127);
  const auto below = [&](std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(0, most - 1)(random);
  };
  constexpr std::string_view special = "/?#@:%[]&=;$ {}.0129az";
  std::vector<std::string> all;
  for (std::size_t index = 0; index < count; ++index) {
    std::array<std::string, 5> parts{"user", "1234", "host", "6379", "0"};
    std::string& marked = parts[part == MarkedPart::password ? 1 : below(parts.size())];
    marked = below(2) == 0 ? uriMarker : "12" + std::string(1, special[below(special.size())]) + uriMarker;
    for (std::size_t more = below(4); more > 0; --more) {
      marked.insert(below(2) == 0 ? 0 : marked.size(), 1, special[below(special.size())]);
    }
    std::string uri = std::string(scheme) + "://" + parts[0] + ":" + parts[1] + "@" + parts[2] + ":" +
                      parts[3] + "/" + parts[4];
    if (below(3) == 0) uri += "?fance=off&a=%zz";
    for (std::size_t more = below(3); part == MarkedPart::any && more > 0; --more) {
      // Not inside the marker, which would not be found then.
      const std::size_t at = uri.find(uriMarker);
      const std::size_t from = scheme.size() + 1;
      const std::size_t place = below(2) == 0 && at > from ? from + below(at - from) : uri.size() - 1;
      if (place < at || place >= at + std::string_view(uriMarker).size()) uri.erase(place, 1);
    }
    all.push_back(std::move(uri));
  }
  return all;
}

}  // namespace lockkeeper::test
