#pragma once

#include <Poco/JSON/Object.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/error.h"
#include "lockkeeper/etcd/etcd_options.h"
#include "store/call_fault.h"
#include "wire/connection.h"

namespace lockkeeper::etcd {

/// What a call may have done when its reply is not seen.
enum class Effect { none, perhaps };

/// A reply that is no error, or says that there is no such lease.
struct Answer {
  Poco::JSON::Object::Ptr json{};
  Instant sentAt{};  ///< Before the first byte of the request was sent.
  bool noLease = false;
};

/// One of several calls that are made together.
struct BatchedCall {
  std::string body;
  std::optional<Answer> answer{};
  ErrorCode error = ErrorCode::storeUnavailable;  ///< Why there is no answer.
  std::string cause{};
};

/// The JSON gateways of a cluster's members, and connections to them. A call is answered by the member that
/// answered the last one; when it does not, has no leader or is set up wrongly, by the next, as long as
/// nothing can have been done. Thread-safe.
class Gateway {
 public:
  Gateway(EtcdOptions options, Environment environment, const Resolver& resolve = resolveBySystem);

  /// One call. Throws StoreUnavailable, OutcomeUnknown (with Effect::perhaps only) and ConfigError (what is
  /// wrong with a single member only when the same goes for all), all of which name the store.
  Answer call(std::string_view path, std::string_view body, Instant deadline, Effect effect);

  /// Several calls to one member at the same time. Never throws for reasons of the store.
  void callAll(std::string_view path, std::span<BatchedCall> calls, Instant deadline);

  /// Sends a request without waiting for its reply. Does nothing when that cannot be done at once.
  void send(std::string_view path, std::string_view body) noexcept;

  /// A connection on which a request for a stream is posted; its replies are its body's lines. Throws as
  /// call().
  std::unique_ptr<Connection> stream(std::string_view path, std::string_view body, Instant deadline);

  /// The member that is asked now. One that is suspected is not, from now on.
  std::size_t current() const { return current_.load(); }
  void suspect(std::size_t member);

  const EtcdOptions& options() const { return options_; }
  const Environment& environment() const { return environment_; }
  Clock& clock() const { return *environment_.clock; }
  Instant oneTimeout() const { return saturatingAdd(clock().now(), options_.ioTimeout); }
  const std::string& name() const { return name_; }

  const ForkGuard forkGuard;

 private:
  friend class Batch;
  struct Attempt;
  struct FailedAttempts;
  struct LogIn;

  /// One that was kept, or a new one.
  std::unique_ptr<Connection> connection(std::size_t member);
  std::unique_ptr<Connection> kept(std::size_t member);
  std::unique_ptr<Connection> dial(std::size_t member);
  void keepIdle(std::unique_ptr<Connection> connection);
  Attempt attempt(std::string_view path, std::string_view body, const std::string& token, Instant deadline);
  void goOn(FailedAttempts& failed, Attempt last, Effect effect, Instant deadline);
  /// Whether a member that has not answered from `since` until `until` is to be suspected, where its timeout
  /// is `own`.
  static bool usedItsTimeout(Instant since, Instant until, std::chrono::milliseconds own);
  void exchange(Connection& connection, Instant deadline) const;
  std::string fieldsFor(std::size_t member, const std::string& token) const;
  std::string token(Instant deadline);
  std::string logInForAll(std::unique_lock<std::mutex>& lock, Instant deadline);
  std::string logIn(Instant deadline);
  std::string knownToken();
  /// The reply that has come; otherwise `fault` says what it means.
  static std::optional<Answer> answerOn(Connection& connection, CallFault& fault);
  void forgetToken(const std::string& token);
  [[noreturn]] void fail(const Attempt& last, Effect effect) const;

  const EtcdOptions options_;
  const Environment environment_;
  const std::string name_;
  const Poco::Net::Context::Ptr tls_;
  std::vector<std::unique_ptr<MemberHost>> hosts_;  // of the members; the connections refer to them
  std::atomic<std::size_t> current_ = 0;

  std::mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_;
  std::string token_;
  std::shared_ptr<LogIn> logIn_;  // that is under way
  std::condition_variable loggedIn_;
};

}  // namespace lockkeeper::etcd
