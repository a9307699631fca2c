#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/lock_manager.h"
#include "lockkeeper/poco/client_options.h"
#include "lockkeeper/poco/export.h"
#include "lockkeeper/poco/http_filter.h"
#include "lockkeeper/store/value_store.h"

namespace Poco::Util {
class AbstractConfiguration;
}

namespace lockkeeper::poco {

struct Settings;

/// Requests that may be repeated with the same Idempotency-Key and are carried out once.
struct IdempotentRoute {
  std::string name{};   ///< [A-Za-z0-9_.-]{1,64}. Keys of different routes are different keys.
  std::string match{};  ///< As of RateLimitFilter's routes, such as "POST /orders". Not GET or HEAD.

  /// What tells clients apart, so that none gets another's answer: "user", "address", "header NAME", "cookie
  /// NAME", "query NAME", "json NAME" or "path NAME". A request whose value is missing or empty has no known
  /// client: it is refused with 400, or passes if the key is not `required`. "all": all clients count as one
  /// and get each other's answers.
  std::string client = "user";

  /// A request without a key, or without what tells clients apart, is refused with 400; if false, it passes
  /// as if it had no route.
  bool required = true;

  /// How long answers are kept: 1 ms to 366 days.
  std::chrono::milliseconds keepFor{std::chrono::hours{24}};

  /// How long a request counts as in flight after its server has died: 10 ms to 24 h.
  std::chrono::milliseconds ttl{std::chrono::seconds{30}};
};

/// What happened to a request instead of being carried out, or after it.
enum class IdempotencyEvent {
  replayed,   ///< The kept answer was sent again.
  inFlight,   ///< 409: the same key is being served.
  reused,     ///< 422: the key belongs to another request.
  storeDown,  ///< 503: it is unknown whether the request was carried out before.
  notKept,    ///< Carried out and answered, but the store could not keep the answer: a repetition runs again.
};

/// Lives only during the call.
struct IdempotencyReport {
  std::string_view route;
  IdempotencyEvent event;
  std::string_view message{};  ///< Of storeDown and notKept: why.
  std::string_view trace{};    ///< The trace-id of its `traceparent` (W3C Trace Context), if that is valid.
};

/// How Idempotency works. Its constructor refuses values out of range.
struct LOCKKEEPER_POCO_EXPORT IdempotencyOptions {
  /// Only POST, PATCH, PUT and DELETE are kept; requests by other methods pass, whatever the routes say.
  std::vector<IdempotentRoute> routes{};

  std::size_t maxBody = std::size_t{1} << 20;  ///< Longest request body, in bytes: 1 to 16 MiB. Longer: 413.

  /// How long a body may take to arrive, during which it occupies a thread of the server: 10 ms to 1 h.
  /// Longer: 408.
  std::chrono::milliseconds bodyTimeout{std::chrono::seconds{30}};

  /// Longest answer that is kept whole, with its fields, in bytes: 1024 to maxValueBytes. Of a longer one,
  /// only the fact is kept: a repeated request is not carried out, but answered with 409.
  std::size_t maxAnswer = maxValueBytes;

  /// How many bytes of whole answers this process may have in the store at a time. Of answers beyond that,
  /// only the fact is kept. After a restart, the count begins at 0.
  std::size_t maxStored = std::size_t{16} << 20;

  /// The same for each client, so that one of them does not use up all of it; facts count here, as 300 bytes
  /// each. A client has as many bytes again, and 64 KiB at least, for facts; when they are used up, too, its
  /// new requests are refused with 429 until some have ended. Routes with the same `client` share the count.
  /// Not where `client` is "all".
  std::size_t maxStoredPerClient = std::size_t{4} << 20;

  /// Whether the same key on two hosts, as the requests name them, is two keys. Ports do not count.
  bool perHost = true;

  /// Which answers are final: those are kept. Empty: all but 401, 407, 408, 409, 421, 423, 425, 429 and 5xx,
  /// which say that the same request may succeed another time.
  std::function<bool(int status)> isFinal{};

  /// Put before the keys of answers; see ManagerOptions::keyNamespace. reload() does not change it.
  std::string keyNamespace{};
  std::chrono::milliseconds operationTimeout{std::chrono::seconds{2}};  ///< Of the store of answers.
  std::shared_ptr<Clock> clock{};                                       ///< Null: the system's.

  ClientOptions clients{};

  /// For logs and metrics. Called on the threads that serve requests; must be quick; what it throws is
  /// ignored. Default: writes to Poco::Logger "lockkeeper.http".
  std::function<void(const IdempotencyReport& report)> report{};

  /// Reads `lockkeeper.http` and `lockkeeper.namespace`; docs/configuration.md lists the settings. Throws
  /// ConfigError that names the first setting that is unknown or not allowed.
  static IdempotencyOptions fromConfiguration(const Poco::Util::AbstractConfiguration& configuration);

  /// The same from a configuration that was read before.
  static IdempotencyOptions fromSettings(const Settings& settings);
};

/// Carries requests of a Poco HTTP server out once for each Idempotency-Key
/// (draft-ietf-httpapi-idempotency-key-header-07), over all servers that share the stores. Thread-safe.
///
/// A request is served under a lock; its answer is collected in memory, kept, and then sent. If the same
/// request comes again (method, target and SHA-256 of the body), it gets the kept answer, with
/// `Idempotent-Replayed: true`. Another request with the same key gets 422, and one that comes while the
/// first is served gets 409. A kept answer is never replaced.
///
/// If a handler throws, the answer is that of RequestLocks, and nothing is kept, whatever the handler has
/// sent before.
///
/// If a server dies, or loses its lock or its store, before it has kept the answer, a repeated request is
/// carried out again. So requests are carried out at least once; for exactly once, the handler must write the
/// key, or currentLock()->fence(), in its own transaction.
///
/// Handlers of its routes get a request and a response in memory, which behave the same but are not Poco's
/// own HTTPServerRequestImpl. Wrap it around RequestLocks and inside RateLimitFilter.
class LOCKKEEPER_POCO_EXPORT Idempotency final : public HttpFilter<IdempotencyOptions> {
 public:
  /// `answers` may be on another store than the locks, see LockServices::sharedAnswers(). Throws
  /// std::invalid_argument, naming the setting, for a route that no request can match and for everything else
  /// that is not allowed.
  Idempotency(std::shared_ptr<LockManager> manager, std::shared_ptr<ValueStore> answers,
              IdempotencyOptions options);

 private:
  class State;
  class Handler;
};

}  // namespace lockkeeper::poco
