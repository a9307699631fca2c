#include "http/route/request_path.h"

#include <Poco/Exception.h>
#include <Poco/String.h>
#include <Poco/URI.h>

#include <algorithm>
#include <utility>

namespace lockkeeper::poco {

namespace {

constexpr std::string_view behindScheme = "://";

bool isControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < ' ' || byte == 0x7f;
}

/// The path of http://shop.example/sms?x, with its query.
std::optional<std::string_view> withoutAuthority(std::string_view target) {
  const std::size_t end = target.find(behindScheme);
  const std::string scheme(target.substr(0, end));
  if (end == target.npos || (Poco::icompare(scheme, "http") != 0 && Poco::icompare(scheme, "https") != 0)) {
    return std::nullopt;
  }
  const std::string_view rest = target.substr(end + behindScheme.size());
  const std::size_t path = std::min(rest.find_first_of("/?"), rest.size());
  if (path == 0) return std::nullopt;
  try {
    const Poco::URI valid{std::string(target)};
  } catch (const Poco::SyntaxException&) {
    return std::nullopt;
  }
  return rest.substr(path);
}

std::optional<std::string> decodedSegment(std::string_view segment) {
  std::string decoded;
  try {
    Poco::URI::decode(std::string(segment), decoded);
  } catch (const Poco::SyntaxException&) {
    return std::nullopt;
  }
  const bool ambiguous = decoded.empty() || decoded == "." || decoded == ".." ||
                         decoded.find_first_of("/\\") != decoded.npos ||
                         std::ranges::any_of(decoded, isControl);
  return ambiguous ? std::nullopt : std::optional(decoded);
}

}  // namespace

std::optional<std::vector<std::string>> pathSegments(std::string_view target) {
  if (target == "*") return std::vector<std::string>{"*"};  // OPTIONS * is for the server as a whole
  if (std::ranges::any_of(target, isControl)) return std::nullopt;
  const auto path = target.starts_with('/') ? target : withoutAuthority(target);
  if (!path) return std::nullopt;
  std::string_view rest = path->substr(0, path->find('?'));
  if (rest.find('#') != rest.npos) return std::nullopt;

  std::vector<std::string> segments;
  while (!rest.empty() && rest != "/") {
    rest.remove_prefix(1);  // the slash
    const std::size_t end = std::min(rest.find('/'), rest.size());
    auto segment = decodedSegment(rest.substr(0, end));
    if (!segment) return std::nullopt;
    segments.push_back(std::move(*segment));
    rest.remove_prefix(end);
  }
  return segments;
}

std::optional<std::string> queryField(const std::string& target, const std::string& name) {
  try {
    for (const auto& [key, value] : Poco::URI(target).getQueryParameters()) {
      if (key == name) return value;
    }
  } catch (const Poco::SyntaxException&) {
    // As if it were not there.
  }
  return std::nullopt;
}

std::string hostOf(const Poco::Net::HTTPServerRequest& request) {
  const std::string& target = request.getURI();
  const bool isPath = target.starts_with('/') || target == "*";
  if (!isPath) {
    try {
      return Poco::toLower(Poco::URI(target).getHost());
    } catch (const Poco::SyntaxException&) {
      return "";
    }
  }
  const std::string host = request.get("Host", "");
  const std::size_t literal = host.starts_with('[') ? host.find(']') : 0;  // [::1]:8080
  return Poco::toLower(host.substr(0, host.find(':', literal)));
}

}  // namespace lockkeeper::poco
