#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "hosts/host_report.h"
#include "lockkeeper/base/clock.h"
#include "session/server_options.h"
#include "session/server_session.h"

namespace lockkeeper::mysql {

/// Makes sessions with that one of several hosts that takes the writes. The host that was writable last is
/// asked first. When it is not any more, or has not answered for a while, all hosts are asked at once, each
/// by a thread that ends with its answer; all callers wait for the same search. So a host that swallows
/// everything costs a caller no more than his own deadline, and a search a quarter of a second, or one
/// second when nobody takes writes. Thread-safe.
class HostSearch {
 public:
  /// How a session is made. Both are called from several threads, block until about `deadline` and throw
  /// StoreUnavailable and ConfigError.
  struct LogIn {
    std::function<std::unique_ptr<ServerSession>(const ServerAddress&, Instant deadline)> connect;
    /// Checks the server and makes the session ready. Writes into the report what it finds out on the way.
    std::function<void(ServerSession&, const ServerAddress&, Instant deadline, HostReport&)> prepare;
  };

  /// `options` must outlive it.
  HostSearch(const ServerOptions& options, LogIn logIn, std::shared_ptr<Clock> clock);
  HostSearch(const HostSearch&) = delete;
  HostSearch& operator=(const HostSearch&) = delete;
  /// Waits until log-ins under way have ended: connecting and logging in take the options' connectTimeout
  /// each at most, and the first answer the ioTimeout besides.
  ~HostSearch();

  /// A new session with the writable host. Blocks until `deadline`. Throws what writableAmong() does.
  std::unique_ptr<ServerSession> open(Instant deadline);

 private:
  struct Attempt {
    Attempt(std::size_t itsHost, Instant now) : host(itsHost), began(now) {}
    bool succeeded() const { return done && report.state == HostState::writable; }

    const std::size_t host;
    const Instant began;
    bool claimed = true;  ///< Somebody waits for it: a search, or one caller.
    HostReport report{};
    std::unique_ptr<ServerSession> session{};
    bool done = false;
    std::thread thread{};
  };
  using Lock = std::unique_lock<std::mutex>;
  using Shared = std::shared_ptr<Attempt>;

  // All of these are called with the mutex held.
  /// Where no thread can be started, the attempt has failed at once.
  Shared start(std::size_t host);
  /// An attempt at the host that a caller has given up, or a new one.
  Shared takeUp(std::size_t host);
  void forgetPrimary();
  void reap();
  void beginSearch();
  /// Ends the search when enough hosts have answered; else says when to look again.
  Instant judgeSearch();
  [[noreturn]] void failLate() const;

  void run(const Shared& attempt);
  Instant now() const { return clock_->now(); }

  const ServerOptions& options_;
  const LogIn logIn_;
  const std::shared_ptr<Clock> clock_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::vector<Shared> attempts_;        // Under way, or to be joined.
  std::optional<std::size_t> primary_;  // The host that was writable last.

  // The search under way: one attempt for each host, some of them perhaps of a search before.
  bool searching_ = false;
  std::size_t waiting_ = 0;
  std::vector<Shared> asked_;
  Instant searchBegan_{};
  std::optional<Instant> firstAnswer_;
  // What the last one has found: a session for whoever comes first, or an error for those who come soon.
  std::unique_ptr<ServerSession> found_;
  std::exception_ptr failure_;
  Instant failedAt_{};
};

}  // namespace lockkeeper::mysql
