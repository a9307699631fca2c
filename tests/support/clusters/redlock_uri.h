#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

namespace lockkeeper::test {

/// redlock://127.0.0.1:port,…?query of servers or of ports on this machine.
template <typename Nodes>
std::string redlockUri(const Nodes& nodes, const std::string& query = "") {
  std::string uri = "redlock://";
  for (const auto& node : nodes) {
    if (!uri.ends_with('/')) uri += ",";
    uri += "127.0.0.1:";
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(node)>>) {
      uri += std::to_string(node);
    } else {
      uri += std::to_string(node.port());
    }
  }
  return uri + (query.empty() ? "" : "?" + query);
}

inline std::string redlockUri(std::initializer_list<std::uint16_t> ports, const std::string& query = "") {
  return redlockUri<std::initializer_list<std::uint16_t>>(ports, query);
}

}  // namespace lockkeeper::test
