#pragma once

#include <Poco/Net/HTTPServerRequest.h>

#include <cstddef>
#include <optional>
#include <string>

namespace lockkeeper::poco {

inline constexpr std::size_t maxIdempotencyKeyBytes = 255;

/// The request's Idempotency-Key: the text of a quoted string (RFC 9651, 3.3.3), or without quotes, as many
/// clients send it, of visible characters.
struct IdempotencyKey {
  bool present = false;
  std::optional<std::string> text{};  ///< Empty when it is present and not valid.

  static IdempotencyKey in(const Poco::Net::HTTPServerRequest& request);
};

/// SHA-256, in hexadecimal, of what makes two requests the same: method, target and body.
std::string fingerprintOf(const Poco::Net::HTTPServerRequest& request, const std::string& body);

/// SHA-256, in hexadecimal, of who sends which key, so that neither can be read in a store. An empty host
/// does not count.
std::string digestOf(const std::string& client, const std::string& host, const std::string& idempotencyKey);

}  // namespace lockkeeper::poco
