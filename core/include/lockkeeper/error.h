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
/// Mistakes of the calling code are none of these: a bad key, an option or an argument out of range, also one
/// that only the store at hand cannot take, such as a ttl, is a std::invalid_argument, and nothing has
/// changed; an object used after it was moved from a std::logic_error. ConfigError is for what people write
/// into configurations and URIs, and for how a store is set up.
class LOCKKEEPER_CORE_EXPORT Error : public std::runtime_error {
 public:
  /// `message` must be one line without a secret.
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  /// The kind of error, for callers that switch on it.
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

/// One class for each code that callers catch by type.
template <ErrorCode Code>
class LOCKKEEPER_CORE_EXPORT ErrorOf : public Error {
 public:
  /// As Error().
  explicit ErrorOf(const std::string& message) : Error(Code, message) {}
};

/// To be caught by type. ErrorCode says what each stands for.
/// @{
using StoreUnavailable = ErrorOf<ErrorCode::storeUnavailable>;
using OutcomeUnknown = ErrorOf<ErrorCode::outcomeUnknown>;
using LockTimeout = ErrorOf<ErrorCode::lockTimeout>;
using LockLost = ErrorOf<ErrorCode::lockLost>;
using Cancelled = ErrorOf<ErrorCode::cancelled>;
using Deadlock = ErrorOf<ErrorCode::deadlock>;
using ConfigError = ErrorOf<ErrorCode::config>;
using ProtocolError = ErrorOf<ErrorCode::protocol>;
using ForkedError = ErrorOf<ErrorCode::forked>;
/// @}

/// The first `most` bytes of `text` in one line of ASCII, for messages and logs: other bytes are shown as a
/// backslash, x and two hexadecimal digits, a backslash as two, and what was left out as "...".
LOCKKEEPER_CORE_EXPORT std::string printable(std::string_view text, std::size_t most);

/// printable() between quotes, at most 64 bytes of `text`: how messages show a key or a setting's value.
LOCKKEEPER_CORE_EXPORT std::string quoted(std::string_view text);

}  // namespace lockkeeper
