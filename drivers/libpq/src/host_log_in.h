#pragma once

#include <poll.h>

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/libpq/connection.h"
#include "lockkeeper/libpq/log_in.h"

namespace lockkeeper::libpq {

/// A log-in that is under way: connects to the addresses of one host, one after the other, logs in, asks the
/// server what it is, and pins the session. Only the lookup of the host's name, at the beginning, blocks. One
/// thread at a time.
class HostLogIn {
 public:
  /// `login` and `pins` must outlive it. Fails at `until`; addresses that do not answer share the time.
  HostLogIn(const ServerLogin& login, std::size_t host, const std::string& pins, const Clock& clock,
            Instant until);

  std::size_t host() const { return host_; }
  bool ended() const { return state_ == State::done || state_ == State::failed; }
  /// For poll(), until it has ended.
  pollfd waitsFor() const;
  /// When to call proceed() at the latest.
  Instant wakesAt() const { return addressUntil_; }
  /// Goes on as far as it can without blocking.
  void proceed();

  /// After its end: the session and what is known of its server, which takes writes, or why there is none.
  /// @{
  Handle takeHandle() { return std::move(handle_); }
  const ServerFacts& facts() const { return facts_; }
  std::exception_ptr failure() const { return failure_; }
  /// @}

 private:
  enum class State { connecting, asking, done, failed };

  void lookUp();
  void connectNext();
  void goOn();
  void connected();
  void readFacts();
  void judge();
  /// The failure of an address, that of the library by default: goes on with the next one.
  /// @{
  void fail(std::exception_ptr failure);
  void fail(const std::string& words);
  void fail();
  /// @}
  /// Ends the log-in with a ConfigError: another address would be no better.
  void refuse(const std::string& words);
  const std::string& display() const { return login_.hosts[host_].display; }

  const ServerLogin& login_;
  const std::size_t host_;
  const std::string& pins_;
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

}  // namespace lockkeeper::libpq
