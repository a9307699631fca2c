#include "wire/protocol/server_error.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace lockkeeper::redis {

namespace {

// Refusals of a state that passes: nothing was done, and a later attempt may succeed.
constexpr std::array<std::string_view, 11> refusals = {"LOADING",     "MASTERDOWN", "OOM",       "MISCONF",
                                                       "BUSY",        "READONLY",   "MOVED",     "ASK",
                                                       "CLUSTERDOWN", "TRYAGAIN",   "NOREPLICAS"};

}  // namespace

std::string_view errorClass(const Reply& error) {
  const std::string_view text = error.text;
  const auto end =
      std::find_if(text.begin(), text.end(), [](unsigned char c) { return std::isupper(c) == 0; });
  const auto length = static_cast<std::size_t>(end - text.begin());
  return length == 0 || length > 24 ? "ERR" : text.substr(0, length);
}

bool isError(const Reply& reply, std::string_view name) {
  return reply.kind == ReplyKind::error && errorClass(reply) == name;
}

ServerFault faultOf(const std::string& store, const Reply& error, std::string_view needs) {
  const std::string_view name = errorClass(error);
  if (name == "NOAUTH") return {ErrorCode::config, store + " asks for a password"};
  if (name == "WRONGPASS") return {ErrorCode::config, store + " refused the user name or the password"};
  if (name == "DENIED")
    return {ErrorCode::config, store + " is in protected mode and refuses remote clients"};
  if (name == "NOPERM" || error.text.starts_with("ERR The user executing the script")) {
    return {ErrorCode::config, store + " does not permit what is needed: " + std::string(needs)};
  }
  if (std::find(refusals.begin(), refusals.end(), name) != refusals.end()) {
    return {ErrorCode::storeUnavailable, store + " refused the command: " + std::string(name)};
  }
  return {ErrorCode::outcomeUnknown, store + " answered with an error: " + std::string(name)};
}

void throwError(ErrorCode code, const std::string& text) {
  switch (code) {
    case ErrorCode::config:
      throw ConfigError(text);
    case ErrorCode::protocol:
      throw ProtocolError(text);
    case ErrorCode::outcomeUnknown:
      throw OutcomeUnknown(text);
    default:
      throw StoreUnavailable(text);
  }
}

}  // namespace lockkeeper::redis
