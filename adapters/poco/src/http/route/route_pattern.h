#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockkeeper::poco {

/// Which requests a route is for: "POST /sms", "PUT /orders/{id}", "* /api/*". The method is one word in
/// upper case, or "*" for all; GET also stands for HEAD. A segment {name} stands for any one segment, a "*"
/// at the end for any rest, which may be empty.
class RoutePattern {
 public:
  /// Throws std::invalid_argument, naming the setting `what`, for a pattern that no request can match.
  static RoutePattern parse(const std::string& what, const std::string& text);

  bool matches(std::string_view method, const std::vector<std::string>& path) const;

  struct Request {
    std::string method;
    std::vector<std::string> path;
  };

  /// Requests that this pattern matches, with methods and segments that no pattern names where it leaves them
  /// open, and with up to `mostSegments` of these for a "*". If other patterns match all of them, and none
  /// has as many segments, they match everything that this one does.
  std::vector<Request> loneliest(std::size_t mostSegments) const;

  /// Whether this one decides where both match: at the first segment that differs, a plain one goes before a
  /// {name}, and that before a "*".
  bool before(const RoutePattern& other) const { return rank() < other.rank(); }

  std::size_t segments() const { return path_.size(); }

  /// Which segment of a matching path {name} stands for.
  std::optional<std::size_t> position(std::string_view name) const;

 private:
  enum class Kind { plain, named, rest };
  struct Segment {
    Kind kind;
    std::string text;
  };

  std::vector<std::string> rank() const;

  std::string method_;
  std::vector<Segment> path_;
};

}  // namespace lockkeeper::poco
