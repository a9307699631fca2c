#include "lockkeeper/redis/legacy_options.h"

#include "lockkeeper/driver/key.h"
#include "lockkeeper/error.h"
#include "uri_parameters.h"

namespace lockkeeper::redis {

namespace {

constexpr std::size_t longestPrefix = 256;
constexpr std::chrono::milliseconds longestAllowance{std::chrono::hours{1}};

}  // namespace

LegacyOptions LegacyOptions::fromUri(const StoreUri& uri) {
  allowOnly(uri, {"keyPrefix", "skewAllowance", "pure"}, false);
  if (uri.endpoints().size() != 1) throw ConfigError(uri.scheme() + " takes exactly one host");
  LegacyOptions options;
  readAddress(uri, uri.endpoints()[0], options.redis);
  readLogin(uri, &uri.endpoints()[0], options.redis);
  readCommon(uri, options.redis);
  options.redis.fence = false;
  options.keyPrefix = uri.parameter("keyPrefix").value_or("");
  if (options.keyPrefix.size() > longestPrefix) {
    throw ConfigError("keyPrefix " + quoted(options.keyPrefix) + " has " +
                      std::to_string(options.keyPrefix.size()) + " bytes: at most " +
                      std::to_string(longestPrefix) + " are allowed");
  }
  if (options.keyPrefix.find(reservedMark) != std::string::npos) {
    throw ConfigError("keyPrefix " + quoted(options.keyPrefix) + " contains the reserved text '" +
                      std::string(reservedMark) + "'");
  }
  readDuration(uri, "skewAllowance", std::chrono::milliseconds{0}, longestAllowance, options.skewAllowance);
  options.pure = uri.flag("pure", options.pure);
  return options;
}

}  // namespace lockkeeper::redis
