#include "http/idempotency/idempotency_state.h"

#include <utility>

#include "config/setting.h"
#include "http/request_steps.h"
#include "http/route/route_list.h"
#include "lockkeeper/duration.h"

namespace lockkeeper::poco {

namespace {

using Poco::Net::HTTPResponse;

const std::string root = "lockkeeper.http.idempotency";
constexpr std::size_t mostBody = std::size_t{16} << 20;
constexpr std::size_t leastAnswer = 1024;
constexpr std::chrono::milliseconds longestKept = std::chrono::hours{24 * 366};

bool isFinalStatus(int status) {
  switch (status) {
    case HTTPResponse::HTTP_UNAUTHORIZED:
    case HTTPResponse::HTTP_PROXY_AUTHENTICATION_REQUIRED:
    case HTTPResponse::HTTP_REQUEST_TIMEOUT:
    case HTTPResponse::HTTP_CONFLICT:
    case HTTPResponse::HTTP_MISDIRECTED_REQUEST:
    case HTTPResponse::HTTP_LOCKED:
    case 425:  // Too Early
    case HTTPResponse::HTTP_TOO_MANY_REQUESTS:
      return false;
    default:
      return status < HTTPResponse::HTTP_INTERNAL_SERVER_ERROR;
  }
}

}  // namespace

Idempotency::State::State(std::shared_ptr<LockManager> manager, std::shared_ptr<ValueStore> answers,
                          IdempotencyOptions given)
    : manager_(std::move(manager)),
      answers_(std::move(answers)),
      options_(std::move(given)),
      address_(options_.clients) {
  if (!options_.keyNamespace.empty()) checkSettingName("the namespace", options_.keyNamespace);
  checkRange(root + ".maxBody", options_.maxBody, 1, mostBody);
  checkRange(root + ".maxAnswer", options_.maxAnswer, leastAnswer, maxValueBytes);
  for (const auto& route : options_.routes) routes_.push_back(routeOf(route));
  sortRoutes(routes_);
}

Idempotency::State::Route Idempotency::State::routeOf(const IdempotentRoute& given) const {
  checkSettingName("a name in " + root + ".routes", given.name);
  const std::string here = root + ".routes." + given.name;
  RoutePattern pattern = RoutePattern::parse(here + ".match", given.match);
  const std::string method = given.match.substr(0, given.match.find(' '));
  if (method != "*" && !options_.methods.contains(method)) {
    throw ConfigError(here + ".match is " + quoted(given.match) + ", which no request can match: " + method +
                      " is not one of " + root + ".methods");
  }
  checkDuration<ConfigError>(here + ".keepFor", given.keepFor, std::chrono::milliseconds{1}, longestKept);
  const LockOptions lock{.ttl = given.ttl,
                         .waitFor = std::chrono::milliseconds{0},
                         .renew = Renew::automatic,
                         .maxHold = forever,
                         .safetyMargin = given.ttl / 10};
  checkLock(here, lock);
  KeySource client = KeySource::parse(here + ".client", given.client, pattern, options_.clients.user);
  return {.name = given.name,
          .pattern = std::move(pattern),
          .client = std::move(client),
          .required = given.required,
          .keepFor = given.keepFor,
          .lock = lock};
}

const Idempotency::State::Route* Idempotency::State::find(const Poco::Net::HTTPServerRequest& request,
                                                          const std::vector<std::string>& path) const {
  if (!options_.methods.contains(request.getMethod())) return nullptr;
  return findRoute(routes_, request.getMethod(), path);
}

std::optional<StoredAnswer> Idempotency::State::kept(const std::string& key) {
  const auto bytes = answers_->get(valueKey(key), deadline());
  return bytes ? std::optional(StoredAnswer::decode(*bytes)) : std::nullopt;
}

void Idempotency::State::keep(const Route& route, const std::string& key,
                              const StoredAnswer& answer) noexcept {
  try {
    if (options_.isFinal ? !options_.isFinal(answer.status) : !isFinalStatus(answer.status)) return;
    std::string bytes = answer.encode();
    if (bytes.size() > options_.maxAnswer) {
      const StoredAnswer fact{.fingerprint = answer.fingerprint, .status = answer.status, .whole = false};
      bytes = fact.encode();
    }
    try {
      answers_->add(valueKey(key), bytes, route.keepFor, deadline());
    } catch (const Error&) {
      // Once more, since a lost answer means that a repetition runs again. The first one that is kept stays.
      answers_->add(valueKey(key), bytes, route.keepFor, deadline());
    }
  } catch (...) {
    report(route, IdempotencyEvent::notKept);
  }
}

void Idempotency::State::report(const Route& route, IdempotencyEvent event) const noexcept {
  tell(options_.report, {.route = route.name, .event = event});
}

std::string Idempotency::State::valueKey(const std::string& key) const {
  return options_.keyNamespace.empty() ? key : options_.keyNamespace + ":" + key;
}

}  // namespace lockkeeper::poco
