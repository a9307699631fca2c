#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockkeeper/base/clock.h"
#include "session/server_options.h"
#include "session/statement.h"

struct pg_conn;

namespace lockkeeper::postgres {

struct CloseHandle {
  void operator()(pg_conn* handle) const;
};
using Handle = std::unique_ptr<pg_conn, CloseHandle>;

/// In a SELECT: the server's time, in us.
inline constexpr const char* serverTime =
    "(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.*) "
    "1000000)::pg_catalog.int8";

/// What a server has said to that, and when.
struct ServerTime {
  std::int64_t value = 0;
  Instant heardAt{};
};

/// What a server has said of itself and of the session when that was new.
struct ServerFacts {
  bool isDirect = false;  ///< No pooler gives our statements to sessions of its own.
  /// Its process, and when that began: a condition on pg_stat_activity. Empty for a pooler.
  std::string backend{};
  bool takesWrites = false;
  std::string started{};  ///< When the server was: another server, or one that lacks commits, has another.
  std::uint32_t timeline = 0;  ///< Counts the promotions; 0 unless several hosts are named.
  ServerTime time{};
  bool survivesCrash = false;  ///< No crash of the server undoes a commit.
  bool mayLag = false;         ///< A standby that takes over may lack commits.
};

/// One line for people.
std::string durabilityOf(const ServerFacts& facts);

/// The values that make a session mean what our statements say, whatever the server's defaults are: a list
/// for SELECT. With `isLocal`, until the end of the transaction.
std::string pins(bool isLocal);

/// Waits until one of the sockets can be used, or until `until`.
void pollUntil(std::vector<pollfd>& sockets, const Clock& clock, Instant until);

/// A log-in that is under way: connects to the addresses of one host, one after the other, logs in, asks the
/// server what it is, and pins the session. Only the lookup of the host's name, at the beginning, blocks. One
/// thread at a time.
class LogIn {
 public:
  /// `options` must outlive it. Fails at `until`; addresses that do not answer share the time.
  LogIn(const ServerOptions& options, std::size_t host, const Clock& clock, Instant until);

  std::size_t host() const { return host_; }
  bool ended() const { return state_ == State::done || state_ == State::failed; }
  /// For poll(), until it has ended.
  pollfd waitsFor() const;
  /// When to call proceed() at the latest.
  Instant wakesAt() const { return addressUntil_; }
  /// Goes on as far as it can without blocking.
  void proceed();

  /// After its end: the session and what is known of its server, or why there is none.
  /// @{
  Handle takeHandle() { return std::move(handle_); }
  const ServerFacts& facts() const { return facts_; }
  std::exception_ptr failure() const { return failure_; }
  /// @}

 private:
  enum class State { connecting, asking, done, failed };

  void lookUp();
  void connectNext();
  void connected();
  void readFacts();
  void judge();
  /// Notes the failure, and goes on with the next address.
  void fail(const std::string& words);
  /// Ends the log-in with a ConfigError.
  void refuse(const std::string& words);
  const std::string& display() const { return options_.hosts[host_].display; }

  const ServerOptions& options_;
  const std::size_t host_;
  const Clock& clock_;
  const Instant until_;
  std::vector<std::string> addresses_;  // Still to be tried; the next one is the last.
  Instant addressUntil_;
  State state_ = State::connecting;
  short events_ = 0;
  Handle handle_;
  std::optional<Result> answer_;
  ServerFacts facts_;
  std::exception_ptr failure_;
};

}  // namespace lockkeeper::postgres
