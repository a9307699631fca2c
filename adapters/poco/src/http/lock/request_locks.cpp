#include "lockkeeper/poco/request_locks.h"

#include <Poco/StringTokenizer.h>

#include <utility>

#include "config/setting.h"
#include "http/lock/current_lock.h"
#include "http/lock/hang_up_watch.h"
#include "http/request_steps.h"
#include "http/route/key_source.h"
#include "http/route/route_list.h"

namespace lockkeeper::poco {

namespace {

using Poco::StringTokenizer;
using Poco::Net::HTTPRequestHandlerFactory;
using Poco::Net::HTTPResponse;
using Poco::Net::HTTPServerRequest;
using Poco::Net::HTTPServerResponse;

const std::string locksRoot = "lockkeeper.http.locks";
constexpr std::size_t mostSources = 4;
// Not a colon: with a value it could make the mark that no key may contain.
constexpr char partMark = '/';

struct Route {
  std::string name;
  RoutePattern pattern;
  std::vector<KeySource> sources;
  std::string scope;
  LockOptions lock;
};

std::vector<KeySource> sourcesOf(const std::string& what, const std::string& text,
                                 const RoutePattern& pattern, const UserOf& user) {
  const StringTokenizer parts(text, ",", StringTokenizer::TOK_TRIM);
  if (parts.count() > mostSources) {
    throw ConfigError(what + " has " + std::to_string(parts.count()) + " parts: 1 to 4 are allowed");
  }
  std::vector<KeySource> sources;
  for (const auto& part : parts) {
    sources.push_back(KeySource::parse(what, part, pattern, user));
    if (sources.back().needsBody()) {
      throw ConfigError(what + " is " + quoted(text) + ": the body is not read before the lock is held");
    }
  }
  if (sources.empty()) throw ConfigError(what + " is missing: it says what the key is made of, as path id");
  return sources;
}

Route routeOf(const LockedRoute& given, const UserOf& user, const LockOptions& defaults) {
  checkSettingName("a name in " + locksRoot, given.name);
  const std::string root = locksRoot + "." + given.name;
  if (!given.scope.empty()) checkSettingName(root + ".scope", given.scope);
  LockOptions lock = given.lock;
  if (!lock.renew) lock.renew = Renew::automatic;  // a handler does not renew
  if (!lock.waitFor) lock.waitFor = defaults.waitFor.value_or(std::chrono::milliseconds{0});
  lock.stop = {};
  checkLock(root, lock, defaults);
  RoutePattern pattern = RoutePattern::parse(root + ".match", given.match);
  std::vector<KeySource> sources = sourcesOf(root + ".by", given.by, pattern, user);
  return {.name = given.name,
          .pattern = std::move(pattern),
          .sources = std::move(sources),
          .scope = given.scope.empty() ? given.name : given.scope,
          .lock = std::move(lock)};
}

/// Until the holder's lease ends; 0 when nobody can tell.
std::chrono::milliseconds remainingLease(LockManager& manager, const std::string& key) {
  try {
    const auto holder = manager.holder(key);
    return holder ? holder->remaining.value_or(std::chrono::milliseconds{0}) : std::chrono::milliseconds{0};
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

class RequestLocks::State {
 public:
  State(std::shared_ptr<LockManager> manager, RequestLockOptions options)
      : manager_(std::move(manager)), options_(std::move(options)), address_(options_.clients) {
    for (const auto& route : options_.routes) {
      routes_.push_back(routeOf(route, options_.clients.user, manager_->defaults()));
    }
    sortRoutes(routes_);
  }

  const Route* find(const HTTPServerRequest& request, const std::vector<std::string>& path) const {
    return findRoute(routes_, request.getMethod(), path);
  }

  std::string keyOf(const Route& route, const HTTPServerRequest& request,
                    const std::vector<std::string>& path) const {
    const RequestFacts facts{request, path, address_, options_.clients.user};
    std::string key = route.scope;
    for (const auto& source : route.sources) key.append(1, partMark).append(source.keyFor(facts));
    return key;
  }

  void report(const Route& route, const std::string& key, RequestLockFault fault) const noexcept {
    tell(options_.report, {.route = route.name, .key = key, .fault = fault});
  }

  LockManager& manager() { return *manager_; }
  HangUpWatch& watch() { return watch_; }

 private:
  const std::shared_ptr<LockManager> manager_;
  const RequestLockOptions options_;
  const ClientAddress address_;
  std::vector<Route> routes_;
  HangUpWatch watch_;
};

class RequestLocks::Handler final : public Poco::Net::HTTPRequestHandler {
 public:
  Handler(std::shared_ptr<State> state, std::shared_ptr<HTTPRequestHandlerFactory> handlers)
      : state_(std::move(state)), handlers_(std::move(handlers)) {}

  void handleRequest(HTTPServerRequest& request, HTTPServerResponse& response) override {
    const auto path = pathOrRefuse(request, response);
    if (!path) return;
    const Route* route = state_->find(request, *path);
    if (route == nullptr) return passOn(*handlers_, request, response);
    const std::string key = state_->keyOf(*route, request, *path);
    if (auto lock = take(*route, key, request, response)) serve(*route, key, *lock, request, response);
  }

 private:
  /// Empty when the request has been answered, or nobody is there to answer to.
  std::optional<Lock> take(const Route& route, const std::string& key, HTTPServerRequest& request,
                           HTTPServerResponse& response) {
    LockOptions options = route.lock;
    std::optional<HangUpWatch::Client> client;
    const auto socket = socketOf(request);
    if (socket && *options.waitFor > std::chrono::milliseconds{0}) {
      options.stop = client.emplace(state_->watch(), *socket).hungUp();
    }
    try {
      auto lock = state_->manager().tryLock(key, options);
      if (options.stop.stop_requested()) {
        response.setKeepAlive(false);
        state_->report(route, key, RequestLockFault::hungUp);
        return std::nullopt;
      }
      if (lock) return lock;
    } catch (const Error&) {
      state_->report(route, key, RequestLockFault::storeDown);
      refuseForNow(request, response, HTTPResponse::HTTP_SERVICE_UNAVAILABLE,
                   "The resource cannot be locked at present.");
      return std::nullopt;
    }
    state_->report(route, key, RequestLockFault::busy);
    refuseForNow(request, response, HTTPResponse::HTTP_LOCKED,
                 "Another request has the lock of this resource.", remainingLease(state_->manager(), key));
    return std::nullopt;
  }

  void serve(const Route& route, const std::string& key, Lock& lock, HTTPServerRequest& request,
             HTTPServerResponse& response) {
    try {
      const CurrentLock current(lock);
      passOn(*handlers_, request, response);
    } catch (...) {
      release(route, key, lock);
      answerForException(request, response);
      throw;
    }
    release(route, key, lock);
  }

  void release(const Route& route, const std::string& key, Lock& lock) noexcept {
    const bool lost = lock.state() == LockState::lost;
    if (lock.release() == ReleaseResult::notOwner || lost) {
      state_->report(route, key, RequestLockFault::lost);
    }
  }

  const std::shared_ptr<State> state_;
  const std::shared_ptr<HTTPRequestHandlerFactory> handlers_;
};

RequestLocks::RequestLocks(std::shared_ptr<LockManager> manager, RequestLockOptions options)
    : state_(std::make_shared<State>(std::move(manager), std::move(options))) {}

RequestLocks::RequestLocks(RequestLocks&&) noexcept = default;
RequestLocks& RequestLocks::operator=(RequestLocks&&) noexcept = default;
RequestLocks::~RequestLocks() = default;

std::unique_ptr<HTTPRequestHandlerFactory> RequestLocks::wrap(
    std::unique_ptr<HTTPRequestHandlerFactory> handlers) {
  return std::make_unique<HandlerFactory<Handler, State>>(state_, std::move(handlers));
}

}  // namespace lockkeeper::poco
