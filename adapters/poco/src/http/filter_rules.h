#pragma once

#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPRequestHandlerFactory.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/setting_value.h"
#include "http/request_steps.h"
#include "http/route/client_address.h"
#include "http/route/key_source.h"
#include "http/route/request_path.h"
#include "http/route/route_list.h"
#include "lockkeeper/lock_options.h"
#include "lockkeeper/poco/http_filter.h"
#include "lockkeeper/trace/trace_scope.h"

namespace lockkeeper::poco {

/// Throws std::invalid_argument that names `what` for options that no lock may have.
void checkLock(const std::string& what, const LockOptions& options);

/// `part`, or std::invalid_argument that says `what` is missing.
template <class Part>
std::shared_ptr<Part> needed(std::shared_ptr<Part> part, const char* what) {
  if (!part) throw std::invalid_argument(std::string("an HTTP filter needs a ") + what);
  return part;
}

/// What a filter goes by: its options, checked, and never changed after that. A `Route` has a name, a pattern
/// and `static Route of(given, options)`, which throws std::invalid_argument for what is not allowed.
template <class OptionsOfFilter, class Route>
class FilterRules {
 public:
  using Options = OptionsOfFilter;

  /// Throws std::invalid_argument that names the setting.
  explicit FilterRules(Options options) : options_(std::move(options)), address_(options_.clients) {
    checkFilter(options_);
    for (const auto& given : options_.routes) routes_.push_back(Route::of(given, options_));
    sortRoutes(routes_);
  }
  FilterRules(const FilterRules&) = delete;
  FilterRules& operator=(const FilterRules&) = delete;

  /// The most specific route that matches, or null.
  const Route* find(std::string_view method, const std::vector<std::string>& path) const {
    return findRoute(routes_, method, path);
  }

  RequestFacts facts(const Poco::Net::HTTPServerRequest& request,
                     const std::vector<std::string>& path) const {
    return {request, path, address_, options_.clients.user};
  }

  const Options& options() const { return options_; }
  const std::vector<Route>& routes() const { return routes_; }

 private:
  const Options options_;
  const ClientAddress address_;
  std::vector<Route> routes_;
};

/// Throws ConfigError for options that no filter can have. The program sets its hooks only after they were
/// read, so they count as given.
template <class Rules>
void checkConfigured(typename Rules::Options options) {
  options.clients.user = [](const Poco::Net::HTTPServerRequest&) { return std::string(); };
  asConfigured("", [&] { const Rules rules(std::move(options)); });
}

/// Serves one request by the rules of the moment when it came, as part of the trace that its `traceparent`
/// names. What no filter may decide about is refused here, before any of them does.
template <class State, class Rules>
class FilterHandler : public Poco::Net::HTTPRequestHandler {
 public:
  FilterHandler(std::shared_ptr<State> state, std::shared_ptr<Poco::Net::HTTPRequestHandlerFactory> handlers)
      : state_(std::move(state)), rules_(state_->rules()), handlers_(std::move(handlers)) {}

  void handleRequest(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response) final {
    const std::string trace(traceOf(request));  // also if somebody changes the header meanwhile
    const TraceScope scope(trace);
    const auto path = pathSegments(request.getURI());
    receive(request, response, [&](Poco::Net::HTTPServerRequest& received) {
      if (path) return serve(*path, received, response);
      refusesAnything() ? refuseTarget(received, response) : passOn(*handlers_, received, response);
    });
  }

 protected:
  /// `path` is that of the request.
  virtual void serve(const std::vector<std::string>& path, Poco::Net::HTTPServerRequest& request,
                     Poco::Net::HTTPServerResponse& response) = 0;

  /// False for a filter that only watches.
  virtual bool refusesAnything() const { return true; }

  const std::shared_ptr<State> state_;
  const std::shared_ptr<const Rules> rules_;
  const std::shared_ptr<Poco::Net::HTTPRequestHandlerFactory> handlers_;  // the application's
};

template <class Handler, class State>
class HandlerFactory final : public Poco::Net::HTTPRequestHandlerFactory {
 public:
  HandlerFactory(std::shared_ptr<State> state, std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory> handlers)
      : state_(std::move(state)), handlers_(std::move(handlers)) {}

  Poco::Net::HTTPRequestHandler* createRequestHandler(const Poco::Net::HTTPServerRequest&) override {
    return new Handler(state_, handlers_);
  }

 private:
  const std::shared_ptr<State> state_;
  const std::shared_ptr<Poco::Net::HTTPRequestHandlerFactory> handlers_;
};

/// What the handlers of a filter share, and the rules that requests which come now go by. `Derived` is the
/// class that derives from it; its handlers are FilterHandlers. Thread-safe.
template <class Derived, class Handler, class Rules>
class FilterState : public HttpFilter<typename Rules::Options>::State,
                    public std::enable_shared_from_this<Derived> {
 public:
  using Options = typename Rules::Options;
  using Handlers = typename HttpFilter<Options>::Handlers;

  /// Throws as Rules does.
  explicit FilterState(Options options) : rules_(std::make_shared<const Rules>(std::move(options))) {}

  std::shared_ptr<const Rules> rules() const {
    const std::lock_guard guard(mutex_);
    return rules_;
  }

  std::function<void()> prepare(Options options) override {
    const auto present = rules();
    const Options& old = present->options();
    if (!options.report) options.report = old.report;
    if (!options.clients.user) options.clients.user = old.clients.user;
    if constexpr (requires { options.isFinal; }) {
      if (!options.isFinal) options.isFinal = old.isFinal;
      if (!options.clock) options.clock = old.clock;
      options.keyNamespace = old.keyNamespace;  // under another one, answers that are kept would not be found
    }
    return [self = this->shared_from_this(),
            fresh = std::make_shared<const Rules>(std::move(options))]() mutable {
      const std::lock_guard guard(self->mutex_);
      self->rules_.swap(fresh);  // the old ones end with their last request
    };
  }

  Handlers wrap(Handlers handlers) override {
    return std::make_unique<HandlerFactory<Handler, Derived>>(this->shared_from_this(), std::move(handlers));
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Rules> rules_;
};

}  // namespace lockkeeper::poco
