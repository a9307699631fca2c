#pragma once

#include <functional>
#include <memory>
#include <utility>

namespace Poco::Net {
class HTTPRequestHandlerFactory;
}

namespace lockkeeper::poco {

class LockServices;

/// What RateLimitFilter, RequestLocks and Idempotency have in common: they stand between a Poco HTTP server
/// and its handlers, and their options can be replaced. Thread-safe.
template <class Options>
class HttpFilter {
 public:
  /// Those of an application, and what stands before them.
  using Handlers = std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory>;

  /// Implemented by the library.
  class State {
   public:
    virtual ~State() = default;
    /// Throws as HttpFilter::reload() does. What it returns puts the options in place, and does not throw.
    virtual std::function<void()> prepare(Options options) = 0;
    /// As HttpFilter::wrap().
    virtual Handlers wrap(Handlers handlers) = 0;
  };

  /// A filter that was moved from can only be assigned to or destroyed.
  HttpFilter(HttpFilter&&) noexcept = default;
  /// The factories that wrap() has made of the former filter continue to work.
  HttpFilter& operator=(HttpFilter&&) noexcept = default;

  /// Replaces the options. Requests that are being served keep the old ones. What is used of a limit stays
  /// used, and kept answers stay for their time, under the namespace with which the filter was made. Hooks
  /// that are empty in `options` (`clients.user`, `report`, those of Idempotency) stay as they are. Throws
  /// like the constructor, and then keeps the old options.
  void reload(Options options) { state_->prepare(std::move(options))(); }

  /// A factory for Poco::Net::HTTPServer, whose handlers do the filter's work and then call those of
  /// `handlers`. Requests without a route are passed on at once. The answer is 400 if a handler could read
  /// the path in another way (`..`, `%2F`, an empty segment…), or if it is unclear where the request ends:
  /// docs/poco.md. If the body comes in chunks, handlers get a request that is not Poco's own. The filter
  /// need not outlive the factory.
  [[nodiscard]] Handlers wrap(Handlers handlers) { return state_->wrap(std::move(handlers)); }

 protected:
  /// By this state from now on.
  explicit HttpFilter(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ~HttpFilter() = default;

 private:
  friend class LockServices;

  std::shared_ptr<State> state_;
};

}  // namespace lockkeeper::poco
