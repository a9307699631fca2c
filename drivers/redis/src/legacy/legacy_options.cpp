#include "lockkeeper/redis/legacy_options.h"

#include <stdexcept>
#include <utility>

#include "lockkeeper/base/key.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "uri_parameters.h"

namespace lockkeeper::redis {

namespace {

constexpr std::size_t longestPrefix = 256;
constexpr std::chrono::milliseconds longestAllowance{std::chrono::hours{1}};

}  // namespace

LegacyOptions LegacyOptions::fromUri(const StoreUri& uri) {
  allowOnly(uri, {"keyPrefix", "skewAllowance", "pure", "tls"}, true);
  if (uri.endpoints().size() != 1) throw ConfigError(uri.scheme() + " takes exactly one host");
  LegacyOptions options;
  readAddress(uri, uri.endpoints()[0], options.redis);
  readLogin(uri, &uri.endpoints()[0], options.redis);
  options.redis.tls = uri.flag("tls", false);
  readCommon(uri, options.redis.tls, options.redis);
  options.redis.fence = false;
  options.keyPrefix = uri.parameter("keyPrefix").value_or("");
  options.skewAllowance =
      uri.duration("skewAllowance", options.skewAllowance, std::chrono::milliseconds{0}, longestAllowance);
  options.pure = uri.flag("pure", options.pure);
  return checked(std::move(options));
}

void LegacyOptions::check() const {
  redis.check();
  if (keyPrefix.size() > longestPrefix) {
    throw std::invalid_argument("keyPrefix " + quoted(keyPrefix) + " has " +
                                std::to_string(keyPrefix.size()) + " bytes: at most " +
                                std::to_string(longestPrefix) + " are allowed");
  }
  if (keyPrefix.find(reservedMark) != std::string::npos) {
    throw std::invalid_argument("keyPrefix " + quoted(keyPrefix) + " contains the reserved text '" +
                                std::string(reservedMark) + "'");
  }
  checkDuration("skewAllowance", skewAllowance, std::chrono::milliseconds{0}, longestAllowance);
}

}  // namespace lockkeeper::redis
