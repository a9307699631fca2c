#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

#include "lockkeeper/export.h"

namespace lockkeeper {

/// What went wrong, for callers that switch on it. Contention is a value, never an error.
enum class ErrorCode {
  storeUnavailable,  ///< The store could not be reached. The operation was certainly not applied.
  outcomeUnknown,    ///< The request was sent, its outcome was not seen. It may have been applied.
  lockTimeout,       ///< The lock stayed busy for the whole `waitFor`.
  lockLost,          ///< The lease ended, or another holder has the key.
  cancelled,         ///< The caller's stop_token was triggered while it waited.
  deadlock,          ///< The store found a cycle of waiting holders and refused this one.
  config,            ///< A setting, a credential or the store's own set-up is not usable.
  protocol,          ///< The peer does not speak the store's protocol. It may have applied the request.
  forked,            ///< The object was made before fork(); the child must make its own.
};

/// Stable lower-case name of a code ("store unavailable"), for logs and metrics.
LOCKKEEPER_CORE_EXPORT const char* toString(ErrorCode code) noexcept;

/// Base of every exception that lockkeeper throws for reasons outside the calling code. Messages are one
/// line and never hold a password, a token or a full URI.
///
/// Mistakes of the calling code are other exceptions. A bad key, or an option or argument out of range, is a
/// std::invalid_argument, even if only this one store refuses the value (of a ttl, for example); nothing has
/// changed then. Using an object that was moved from is a std::logic_error. ConfigError is for what people
/// write into configurations and URIs, and for how a store is set up.
class LOCKKEEPER_CORE_EXPORT Error : public std::runtime_error {
 public:
  /// `message` must be one line without a secret.
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  /// The kind of error, for callers that switch on it.
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

/// The store could not be reached. The operation was certainly not applied.
class LOCKKEEPER_CORE_EXPORT StoreUnavailable : public Error {
 public:
  /// As Error().
  explicit StoreUnavailable(const std::string& message) : Error(ErrorCode::storeUnavailable, message) {}
};

/// The request was sent, but its outcome was not seen. It may have been applied.
class LOCKKEEPER_CORE_EXPORT OutcomeUnknown : public Error {
 public:
  /// As Error().
  explicit OutcomeUnknown(const std::string& message) : Error(ErrorCode::outcomeUnknown, message) {}
};

/// The lock stayed busy for the whole `waitFor`.
class LOCKKEEPER_CORE_EXPORT LockTimeout : public Error {
 public:
  /// As Error().
  explicit LockTimeout(const std::string& message) : Error(ErrorCode::lockTimeout, message) {}
};

/// The lease ended, or another holder has the key.
class LOCKKEEPER_CORE_EXPORT LockLost : public Error {
 public:
  /// As Error().
  explicit LockLost(const std::string& message) : Error(ErrorCode::lockLost, message) {}
};

/// The caller's stop_token was triggered while it waited.
class LOCKKEEPER_CORE_EXPORT Cancelled : public Error {
 public:
  /// As Error().
  explicit Cancelled(const std::string& message) : Error(ErrorCode::cancelled, message) {}
};

/// The store found a cycle of waiting holders and refused this one.
class LOCKKEEPER_CORE_EXPORT Deadlock : public Error {
 public:
  /// As Error().
  explicit Deadlock(const std::string& message) : Error(ErrorCode::deadlock, message) {}
};

/// A setting, a credential or the store's own set-up is not usable.
class LOCKKEEPER_CORE_EXPORT ConfigError : public Error {
 public:
  /// As Error().
  explicit ConfigError(const std::string& message) : Error(ErrorCode::config, message) {}
};

/// The peer does not speak the store's protocol. It may have applied the request.
class LOCKKEEPER_CORE_EXPORT ProtocolError : public Error {
 public:
  /// As Error().
  explicit ProtocolError(const std::string& message) : Error(ErrorCode::protocol, message) {}
};

/// The object was made before fork(); the child must make its own.
class LOCKKEEPER_CORE_EXPORT ForkedError : public Error {
 public:
  /// As Error().
  explicit ForkedError(const std::string& message) : Error(ErrorCode::forked, message) {}
};

/// The first `most` bytes of `text` as one line of printable ASCII, for messages and logs. Other bytes are
/// shown as a backslash, x and two hexadecimal digits, and a backslash as two. "..." stands for what was left
/// out.
LOCKKEEPER_CORE_EXPORT std::string printable(std::string_view text, std::size_t most);

/// printable() between quotes, at most 64 bytes of `text`: how messages show a key or a setting's value.
LOCKKEEPER_CORE_EXPORT std::string quoted(std::string_view text);

}  // namespace lockkeeper
