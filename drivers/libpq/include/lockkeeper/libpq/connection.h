#pragma once

#include <poll.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/libpq/fault.h"
#include "lockkeeper/libpq/result.h"

struct pg_conn;

namespace lockkeeper::libpq {

struct CloseHandle {
  void operator()(pg_conn* handle) const;
};
using Handle = std::unique_ptr<pg_conn, CloseHandle>;

/// Waits until one of the sockets can be used, or until `until`.
void pollUntil(std::vector<pollfd>& sockets, const Clock& clock, Instant until);

/// The connection of a session that is logged in. Its calls block until their deadline and no longer, and it
/// never reconnects. One thread at a time.
class Connection {
 public:
  Connection(Handle handle, StoreFaults store, std::shared_ptr<Clock> clock);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() = default;

  /// Sends statements, with ';' between them, in one message, and returns the result of each. One that fails
  /// ends the transaction. Throws what throwFault() says, and LostSession when there is no answer by
  /// `deadline`.
  std::vector<Result> ask(const std::string& statements, Instant deadline);

  /// False after a lost answer, and when something has come that nobody asked for, such as the session's end.
  bool usable() const;
  bool isLost() const { return isLost_; }
  /// Whether the server may have applied what it was asked for last, if the session was lost meanwhile.
  bool mayHaveApplied() const { return mayHaveApplied_; }
  /// Whether the server has warned meanwhile that a commit may not have reached a standby.
  bool hasWarned() const { return hasWarned_; }

  /// For requests that are not made by ask(). They throw LostSession.
  /// @{
  pg_conn* handle() const { return handle_.get(); }
  bool isOpen() const;
  /// Begins a request.
  void start();
  /// What was sent so far may be applied, whether or not the rest is sent.
  void setMayHaveApplied() { mayHaveApplied_ = true; }
  /// Sends what the library still holds.
  void flush(Instant until);
  /// The next result; nothing at the end of those of a statement.
  std::optional<Result> next(Instant until);
  /// Rolls back what is open, and throws what throwFault() says.
  [[noreturn]] void fail(const Result& fault, Instant until);
  [[noreturn]] void lose(const std::string& words);
  /// With the library's words.
  [[noreturn]] void lose();
  /// @}

 private:
  void await(short events, Instant until);

  const Handle handle_;
  const StoreFaults store_;
  const std::shared_ptr<Clock> clock_;
  bool isLost_ = false;
  bool mayHaveApplied_ = false;
  bool hasWarned_ = false;
};

}  // namespace lockkeeper::libpq
