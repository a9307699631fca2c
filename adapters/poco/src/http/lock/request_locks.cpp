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

  std::function<void()> prepare(RequestLockOptions options) override {
    return FilterState::prepare(completed(std::move(options), manager_->defaults()));
  }

  LockManager& manager() { return *manager_; }
  HangUpWatch& watch() { return watch_; }
  HoldTimes& holdTimes() { return holdTimes_; }

  /// One of the requests that may wait, as long as it lives; none if as many as are `allowed` may already.
  class Waiting {
   public:
    Waiting(State& state, std::size_t allowed) : state_(state), counts_(state.beginWait(allowed)) {}
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting() {
      if (counts_) state_.waiting_.fetch_sub(1);
    }

    explicit operator bool() const { return counts_; }

   private:
    State& state_;
    const bool counts_;
  };

 private:
  bool beginWait(std::size_t allowed) {
    std::size_t before = waiting_;
    while (before < allowed && !waiting_.compare_exchange_weak(before, before + 1)) {
    }
    return before < allowed;
  }

  const std::shared_ptr<LockManager> manager_;
  HangUpWatch watch_;
  HoldTimes holdTimes_;
  std::atomic<std::size_t> waiting_ = 0;
};

class RequestLocks::Handler final : public FilterHandler<State, LockRules> {
 public:
  using FilterHandler::FilterHandler;

  void serve(const std::vector<std::string>& path, HTTPServerRequest& request,
             HTTPServerResponse& response) override {
    const LockRoute* route = rules_->find(request.getMethod(), path);
    if (route == nullptr) return passOn(*handlers_, request, response);
    const std::string key = route->keyFor(rules_->facts(request, path));
    if (auto lock = take(*route, key, request, response)) serveUnder(*lock, *route, key, request, response);
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
                   "The resource cannot be locked right now.");
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
                 "Another request holds the lock on this resource.", state_->holdTimes().usual(route.name));
    return std::nullopt;
  }

  /// Waits until the client hangs up, or not at all when enough others wait.
  std::optional<Lock> wait(const LockRoute& route, const std::string& key, HTTPServerRequest& request,
                           std::stop_token& hungUp, std::string_view& why) {
    LockOptions options = route.lock;
    // It counts from its first attempt, since only core knows when that has found the key busy.
    const State::Waiting waiting(*state_, waitingAllowed(rules_->options(), request));
    if (!waiting) {
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

  void serveUnder(Lock& lock, const LockRoute& route, const std::string& key, HTTPServerRequest& request,
                  HTTPServerResponse& response) {
    const Instant began = now();
    boundSending(request);
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
