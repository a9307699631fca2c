#include "wire/protocol/server_error.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "wire/protocol/redirect.h"

namespace lockkeeper::redis {

namespace {

// Refusals of a state that passes: nothing was done, and a later attempt may succeed.
constexpr std::array<std::string_view, 11> refusals = {"LOADING",     "MASTERDOWN", "OOM",       "MISCONF",
                                                       "BUSY",        "READONLY",   "MOVED",     "ASK",
                                                       "CLUSTERDOWN", "TRYAGAIN",   "NOREPLICAS"};

// What Redis 6 puts before the error of a command: "ERR Error running script (call to f_…): @user_script:1:
// ", and once more "@user_script: 1: -" before a refusal of its own.
constexpr std::string_view scriptError = "ERR Error running script";
constexpr std::string_view scriptPlace = "@user_script:";

// How a command inside a script is refused for want of rights: up to Redis 7.0, and from 7.2 on.
constexpr std::array<std::string_view, 2> scriptRefusals = {"The user executing the script can't",
                                                            "ACL failure in script"};

std::string_view leadingClass(std::string_view text) {
  const auto end =
      std::find_if(text.begin(), text.end(), [](unsigned char c) { return std::isupper(c) == 0; });
  const auto length = static_cast<std::size_t>(end - text.begin());
  return length == 0 || length > 24 ? "ERR" : text.substr(0, length);
}

}  // namespace

std::string_view errorClass(const Reply& error) {
  const std::string_view text = error.text;
  const std::string_view first = leadingClass(text);
  if (first != "ERR") return first;
  for (const std::string_view refusal : scriptRefusals) {
    if (text.find(refusal) != std::string_view::npos) return "NOPERM";
  }
  if (!text.starts_with(scriptError)) return first;
  const std::size_t place = text.rfind(scriptPlace);
  if (place == std::string_view::npos) return first;
  const std::size_t end = text.find(": ", place + scriptPlace.size());
  if (end == std::string_view::npos) return first;
  const std::string_view inner = text.substr(end + 2);
  return leadingClass(inner.starts_with('-') ? inner.substr(1) : inner);
}

bool isError(const Reply& reply, std::string_view name) {
  return reply.kind == ReplyKind::error && errorClass(reply) == name;
}

bool isRefusal(const Reply& reply) {
  return reply.kind == ReplyKind::error &&
         std::find(refusals.begin(), refusals.end(), errorClass(reply)) != refusals.end();
}

ServerFault faultOf(const std::string& store, const Reply& error, std::string_view needs) {
  const std::string_view name = errorClass(error);
  if (name == "NOAUTH") return {ErrorCode::config, store + " asks for a password"};
  if (name == "WRONGPASS") return {ErrorCode::config, store + " refused the user name or the password"};
  if (name == "DENIED")
    return {ErrorCode::config, store + " is in protected mode and refuses remote clients"};
  if (name == "WRONGTYPE") {
    return {ErrorCode::config, store + ": the key holds a value of another type (WRONGTYPE)"};
  }
  if (name == "NOPERM") {
    return {ErrorCode::config, store + " does not permit what is needed: " + std::string(needs)};
  }
  if (const auto redirect = redirectIn(error)) {
    return {ErrorCode::storeUnavailable, store + ": " + describe(*redirect)};
  }
  if (isRefusal(error)) {
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
