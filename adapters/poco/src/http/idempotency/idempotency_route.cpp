#include "http/idempotency/idempotency_route.h"

#include <algorithm>
#include <array>

#include "http/request_body.h"
#include "lockkeeper/base/key.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/check_range.h"
#include "lockkeeper/poco/settings.h"

namespace lockkeeper::poco {

namespace {

constexpr auto idempotencyRoot = "lockkeeper.http.idempotency";
constexpr std::size_t leastAnswer = 1024;
constexpr std::size_t mostStored = std::size_t{1} << 40;
constexpr std::chrono::milliseconds longestKept = std::chrono::hours{24 * 366};
constexpr std::array<std::string_view, 4> keptMethods{"POST", "PATCH", "PUT", "DELETE"};

}  // namespace

bool isKeptMethod(std::string_view method) {
  return std::ranges::find(keptMethods, method) != keptMethods.end();
}

void checkFilter(const IdempotencyOptions& options) {
  if (!options.keyNamespace.empty()) checkName("the namespace", options.keyNamespace);
  checkRange(idempotencyRoot + std::string(".maxBody"), options.maxBody, 1, mostBody);
  checkDuration<>(idempotencyRoot + std::string(".bodyTimeout"), options.bodyTimeout, shortestBodyTimeout,
                  longestBodyTimeout);
  checkRange(idempotencyRoot + std::string(".maxAnswer"), options.maxAnswer, leastAnswer, maxValueBytes);
  checkRange(idempotencyRoot + std::string(".maxStored"), options.maxStored, 0, mostStored);
  checkRange(idempotencyRoot + std::string(".maxStoredPerClient"), options.maxStoredPerClient, 0, mostStored);
  checkDuration<>("operationTimeout", options.operationTimeout, std::chrono::milliseconds{1},
                  std::chrono::hours{1});
}

IdempotencyRoute IdempotencyRoute::of(const IdempotentRoute& given, const IdempotencyOptions& options) {
  checkName(std::string("a name in ") + idempotencyRoot + ".routes", given.name);
  const std::string here = idempotencyRoot + std::string(".routes.") + given.name;
  RoutePattern pattern = RoutePattern::parse(here + ".match", given.match);
  const std::string method = given.match.substr(0, given.match.find(' '));
  if (method != "*" && !isKeptMethod(method)) {
    throw std::invalid_argument(here + ".match is " + quoted(given.match) + ", which no request can match: " +
                                method + " is not one of POST, PATCH, PUT and DELETE");
  }
  checkDuration<>(here + ".keepFor", given.keepFor, std::chrono::milliseconds{1}, longestKept);
  // Nothing is left to the manager's defaults, which were chosen for other locks.
  const LockOptions lock{.ttl = given.ttl,
                         .waitFor = std::chrono::milliseconds{0},
                         .renew = Renew::automatic,
                         .maxHold = forever,
                         .safetyMargin = given.ttl / 10};
  checkLock(here, lock);
  KeySource client = KeySource::parse(here + ".client", given.client, pattern, options.clients.user);
  return {.name = given.name,
          .pattern = std::move(pattern),
          .client = std::move(client),
          .required = given.required,
          .keepFor = given.keepFor,
          .lock = lock};
}

IdempotencyOptions IdempotencyOptions::fromConfiguration(
    const Poco::Util::AbstractConfiguration& configuration) {
  return fromSettings(readSettings(configuration));
}

IdempotencyOptions IdempotencyOptions::fromSettings(const Settings& settings) {
  IdempotencyOptions options = settings.http.idempotency;
  options.clients = settings.http.clients;
  options.keyNamespace = settings.manager.keyNamespace;
  checkConfigured<IdempotencyRules>(options);
  return options;
}

}  // namespace lockkeeper::poco
