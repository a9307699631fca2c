#include "http/route/route_pattern.h"

#include <Poco/Net/HTTPRequest.h>

#include <algorithm>
#include <stdexcept>

#include "lockkeeper/error.h"

namespace lockkeeper::poco {
namespace {

using Poco::Net::HTTPRequest;

constexpr std::string_view anyMethod = "*";
constexpr std::string_view methodLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ-";
constexpr std::string_view patternLetters = "{}*?#%";

std::vector<std::string> split(std::string_view path) {
  std::vector<std::string> segments;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const auto end = std::min(path.find('/'), path.size());
    segments.emplace_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  return segments;
}

}  // namespace

RoutePattern RoutePattern::parse(const std::string& what, const std::string& text) {
  const auto refuse = [&](const std::string& why) -> void {
    throw std::invalid_argument(what + " is " + quoted(text) + ", which no request can match: " + why);
  };
  RoutePattern pattern;
  const auto space = text.find(' ');
  pattern.method_ = text.substr(0, space);
  if (pattern.method_ != anyMethod &&
      (pattern.method_.empty() || pattern.method_.find_first_not_of(methodLetters) != std::string::npos)) {
    refuse("it must begin with a method in upper case, or with *");
  }
  const std::string path = space == std::string::npos ? "" : text.substr(space + 1);
  if (!path.starts_with('/')) refuse("after the method and one space it needs a path that begins with /");
  if (path == "/") return pattern;
  const std::vector<std::string> segments = split(path);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const std::string& segment = segments[i];
    if (segment == "*" && i + 1 == segments.size()) {
      pattern.path_.push_back({Kind::rest, {}});
    } else if (segment.size() > 2 && segment.front() == '{' && segment.back() == '}') {
      const std::string name = segment.substr(1, segment.size() - 2);
      if (name.find_first_of(patternLetters) != std::string::npos) refuse(quoted(name) + " is not a name");
      if (pattern.position(name)) refuse("the name " + quoted(name) + " is given twice");
      pattern.path_.push_back({Kind::named, name});
    } else if (segment.empty() || segment == "." || segment == "..") {
      refuse("paths are compared without empty segments, . and ..");
    } else if (segment.find_first_of(patternLetters) != std::string::npos) {
      refuse("a segment is plain text (decoded, without ? # and %), a {name}, or at the end a *");
    } else {
      pattern.path_.push_back({Kind::plain, segment});
    }
  }
  return pattern;
}

bool RoutePattern::matches(std::string_view method, const std::vector<std::string>& path) const {
  const bool methodFits = method_ == anyMethod || method_ == method ||
                          (method_ == HTTPRequest::HTTP_GET && method == HTTPRequest::HTTP_HEAD);
  if (!methodFits) return false;
  for (std::size_t i = 0; i < path_.size(); ++i) {
    if (path_[i].kind == Kind::rest) return true;
    if (i == path.size()) return false;
    if (path_[i].kind == Kind::plain && path_[i].text != path[i]) return false;
  }
  return path.size() == path_.size();
}

std::vector<RoutePattern::Request> RoutePattern::loneliest(std::size_t mostSegments) const {
  const std::string unnamed = "{}";  // no pattern has such a method or segment
  Request request{method_ == anyMethod ? unnamed : method_, {}};
  for (const Segment& segment : path_) {
    if (segment.kind != Kind::rest) {
      request.path.push_back(segment.kind == Kind::plain ? segment.text : unnamed);
    }
  }
  std::vector<Request> all{request};
  if (path_.empty() || path_.back().kind != Kind::rest) return all;
  for (std::size_t i = 0; i < mostSegments; ++i) {
    request.path.push_back(unnamed);
    all.push_back(request);
  }
  return all;
}

std::optional<std::size_t> RoutePattern::position(std::string_view name) const {
  const auto found = std::ranges::find_if(
      path_, [&](const Segment& segment) { return segment.kind == Kind::named && segment.text == name; });
  if (found == path_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - path_.begin());
}

// One word for each segment, then one for the method, in the order in which patterns decide.
std::vector<std::string> RoutePattern::rank() const {
  std::vector<std::string> words;
  for (const Segment& segment : path_) {
    switch (segment.kind) {
      case Kind::plain:
        words.push_back("1" + segment.text);
        break;
      case Kind::named:
        words.emplace_back("2");
        break;
      case Kind::rest:
        words.emplace_back("3");
        break;
    }
  }
  // The end goes before a "*", and HEAD itself before the GET that stands for it.
  const char method = method_ == anyMethod ? '2' : method_ == HTTPRequest::HTTP_GET ? '1' : '0';
  words.push_back(std::string("0") + method + method_);
  return words;
}

}  // namespace lockkeeper::poco
