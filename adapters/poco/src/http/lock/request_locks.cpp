#include "lockkeeper/poco/request_locks.h"

#include <Poco/Net/HTTPServerParams.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "http/lock/current_lock.h"
#include "http/lock/hang_up_watch.h"
#include "http/lock/hold_times.h"
#include "http/lock/lock_route.h"
#include "http/request_body.h"
#include "http/request_steps.h"

namespace lockkeeper::poco {

namespace {

using Poco::Net::HTTPResponse;
using Poco::Net::HTTPServerRequest;
using Poco::Net::HTTPServerResponse;

/// Never all threads of the server.
std::size_t waitingAllowed(const RequestLockOptions& options, const HTTPServerRequest& request) {
  const auto threads = static_cast<std::size_t>(std::max(1, request.serverParams().getMaxThreads()));
  return std::min(options.maxWaiting.value_or(threads / 2), threads - 1);
}

}  // namespace

class RequestLocks::State final : public FilterState<State, Handler, LockRules> {
 public:
  State(std::shared_ptr<LockManager> manager, RequestLockOptions options)
      : FilterState(completed(std::move(options), manager->defaults())), manager_(std::move(manager)) {}

  void reload(RequestLockOptions options) override {
    FilterState::reload(completed(std::move(options), manager_->defaults()));
  }

  LockManager& manager() { return *manager_; }
  HangUpWatch& watch() { return watch_; }
  HoldTimes& holdTimes() { return holdTimes_; }

  /// One of the requests that wait, as long as it lives.
  class Waiting {
   public:
    explicit Waiting(State& state) : state_(state), before_(state.waiting_.fetch_add(1)) {}
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting() { state_.waiting_.fetch_sub(1); }

    /// How many there were before it.
    std::size_t before() const { return before_; }

   private:
    State& state_;
    const std::size_t before_;
  };

 private:
  const std::shared_ptr<LockManager> manager_;
  HangUpWatch watch_;
  HoldTimes holdTimes_;
  std::atomic<std::size_t> waiting_ = 0;
};

class RequestLocks::Handler final : public FilterHandler<State, LockRules> {
 public:
  using FilterHandler::FilterHandler;

  void handleRequest(HTTPServerRequest& request, HTTPServerResponse& response) override {
    const auto path = pathOf(request);
    if (!path) return refuseTarget(request, response);
    const LockRoute* route = rules_->find(request.getMethod(), *path);
    if (route == nullptr) return passOn(*handlers_, request, response);
    const std::string key = route->keyFor(rules_->facts(request, *path));
    if (auto lock = take(*route, key, request, response)) serve(*route, key, *lock, request, response);
  }

 private:
  /// Empty when the request has been answered, or nobody is there to answer to.
  std::optional<Lock> take(const LockRoute& route, const std::string& key, HTTPServerRequest& request,
                           HTTPServerResponse& response) {
    std::optional<Lock> lock;
    std::stop_token hungUp;
    std::string_view why;
    try {
      lock = *route.lock.waitFor > std::chrono::milliseconds{0} ? wait(route, key, request, hungUp, why)
                                                                : state_->manager().tryLock(key, route.lock);
    } catch (const std::exception& error) {  // also that the store cannot give the route's ttl
      report(request, route, key, RequestLockFault::storeDown, error.what());
      tellRefused(state_->manager().environment(), route.name, HTTPResponse::HTTP_SERVICE_UNAVAILABLE);
      refuseForNow(request, response, HTTPResponse::HTTP_SERVICE_UNAVAILABLE,
                   "The resource cannot be locked at present.");
      return std::nullopt;
    }
    if (hungUp.stop_requested()) {
      response.setKeepAlive(false);
      report(request, route, key, RequestLockFault::hungUp);
      return std::nullopt;
    }
    if (lock) return lock;
    report(request, route, key, RequestLockFault::busy, why);
    tellRefused(state_->manager().environment(), route.name, HTTPResponse::HTTP_LOCKED);
    refuseForNow(request, response, HTTPResponse::HTTP_LOCKED,
                 "Another request has the lock of this resource.", state_->holdTimes().usual(route.name));
    return std::nullopt;
  }

  /// Waits until the client hangs up, or not at all when enough others wait.
  std::optional<Lock> wait(const LockRoute& route, const std::string& key, HTTPServerRequest& request,
                           std::stop_token& hungUp, std::string_view& why) {
    LockOptions options = route.lock;
    const State::Waiting waiting(*state_);
    if (waiting.before() >= waitingAllowed(rules_->options(), request)) {
      options.waitFor = std::chrono::milliseconds{0};
      why = "as many requests wait as lockkeeper.http.maxWaiting allows";
      return state_->manager().tryLock(key, options);
    }
    std::optional<HangUpWatch::Client> client;
    if (const auto* socket = socketOf(request)) {
      options.stop = hungUp = client.emplace(state_->watch(), socket->impl()->sockfd()).hungUp();
    }
    return state_->manager().tryLock(key, options);
  }

  void serve(const LockRoute& route, const std::string& key, Lock& lock, HTTPServerRequest& request,
             HTTPServerResponse& response) {
    const Instant began = now();
    try {
      const CurrentLock current(lock);
      passOn(*handlers_, request, response);
    } catch (...) {
      release(request, route, key, lock);
      answerForException(request, response);
      throw;
    }
    release(request, route, key, lock);
    state_->holdTimes().add(route.name, now() - began);
  }

  Instant now() const { return state_->manager().environment().clock->now(); }

  void release(const HTTPServerRequest& request, const LockRoute& route, const std::string& key,
               Lock& lock) noexcept {
    const bool lost = lock.state() == LockState::lost;
    if (lock.release() == ReleaseResult::notOwner || lost)
      report(request, route, key, RequestLockFault::lost);
  }

  void report(const HTTPServerRequest& request, const LockRoute& route, std::string_view key,
              RequestLockFault fault, std::string_view message = {}) const noexcept {
    tell(rules_->options().report,
         {.route = route.name, .key = key, .fault = fault, .message = message, .trace = traceOf(request)});
  }
};

RequestLocks::RequestLocks(std::shared_ptr<LockManager> manager, RequestLockOptions options)
    : HttpFilter(std::make_shared<State>(needed(std::move(manager), "LockManager"), std::move(options))) {}

}  // namespace lockkeeper::poco
