#pragma once

#include <Poco/Net/HTTPServerRequest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockkeeper::poco {

/// The decoded segments of the path in a request's target; one slash at the end adds none. Empty for a target
/// that a filter and a handler could read as two different paths: one with a "." or ".." segment, an empty
/// segment, a slash or backslash in a segment, a control character, a "#" or an invalid escape, and for one
/// that is neither a path nor an http or https URL. Such a target is refused, never repaired: a handler may
/// split before it decodes, or decode before it splits, or compare the beginning of the raw text.
std::optional<std::vector<std::string>> pathSegments(std::string_view target);

/// The field of that name in the target's query.
std::optional<std::string> queryField(const std::string& target, const std::string& name);

/// The host that a request names, in lower case and without a port: that of its target, or else the field's.
/// Empty for a target that is neither a path nor a URL.
std::string hostOf(const Poco::Net::HTTPServerRequest& request);

}  // namespace lockkeeper::poco
