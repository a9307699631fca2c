#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/driver/driver.h"
#include "wire/mux/multiplexer.h"
#include "wire/protocol/request_pool.h"
#include "wire/protocol/resp.h"
#include "wire/protocol/script.h"
#include "wire/protocol/server_error.h"
#include "wire/sentinel/sentinels.h"

namespace lockkeeper::redis {

/// How often sentinels or the nodes of a cluster are asked who is master, by those who call and, while a
/// process keeps locks, by the keeper of its leases.
inline constexpr std::chrono::milliseconds pauseBetweenLooks{1000};

/// One server with the connection to it, and what the drivers on it share: how they run scripts, read replies
/// and go through keys. Thread-safe.
class RedisStore {
 public:
  /// `onNewServer` is called when the server is another one than before, or has restarted, before any call
  /// gets an answer from it. It must not block and must not call the store.
  RedisStore(const RedisOptions& options, const Environment& environment,
             std::function<void()> onNewServer = {});

  const RedisOptions& options() const { return server_.dialer().options(); }
  const Environment& environment() const { return server_.dialer().environment(); }
  Clock& clock() const { return *environment().clock; }
  /// For messages.
  const std::string& name() const { return server_.store(); }
  std::string durability() const { return server_.dialer().durability(); }
  /// As Multiplexer::serverRun().
  std::string serverRun(std::uint64_t connection) { return server_.serverRun(connection); }

  /// As Multiplexer::execute(). Now and then looks before that whether the server still is the master, and
  /// still keeps all keys: if not, it is left, as a new one is refused, and `onNewServer` called. Sends
  /// ASKING before each command where RedisOptions::cluster says so.
  void execute(Request& request, Instant deadline);

  /// Whether the server has said lately that it is the master. If not, what is missing in an answer to a read
  /// that is sent now counts only when isMaster().
  bool wasMasterLately() const;
  /// Asks the server. False when it is not the one that has answered on `connection`; throws when it is no
  /// master, and as execute().
  bool isMaster(std::uint64_t connection, Instant deadline);

  /// For a request of its own, from now on: a little more than an I/O timeout, so that a connection that says
  /// nothing has been ended before, and the next request goes by a new one.
  Instant oneTimeout() const {
    return saturatingAdd(clock().now(), options().ioTimeout + std::chrono::milliseconds{10});
  }
  /// For further connections to the same server.
  const DialRules& dialRules() const { return dialRules_; }
  /// How often to look() while no call is made; empty where there are no sentinels.
  std::optional<std::chrono::milliseconds> checkEvery() const;
  /// Throws, as execute(), when the server does not answer.
  void ping(Instant deadline);
  /// Asks the sentinels for the master, leaves a server that is not the master any more, and looks whether
  /// the present one answers.
  void checkServer(Instant deadline) noexcept;

  /// As Multiplexer::post(), awaitPosted() and hasPosted().
  bool post(const Request& request, std::unique_ptr<Posted> posted, std::uint64_t connection) {
    return !isImporting() && server_.post(request, std::move(posted), connection);
  }
  void awaitPosted(Instant deadline) { server_.awaitPosted(deadline); }
  bool hasPosted() { return server_.hasPosted(); }

  /// Executes what `fill(request, by)` adds; once more, with the texts, if the server has not seen a script
  /// of it. The replies and sentAt() are then those of the second time, since a call that gets NOSCRIPT does
  /// nothing; so the commands must be such that doing them twice is doing them once.
  template <class Fill>
  void executeScripts(Request& request, Instant deadline, Fill&& fill) {
    fill(request, Script::By::digest);
    execute(request, deadline);
    if (!lacksScript(request)) return;
    request.clear();
    fill(request, Script::By::text);
    execute(request, deadline);
  }

  /// The same in two steps, as Multiplexer::start() and finish(), with the same `fill`. Not for servers that
  /// sentinels name, nor for slots that are on their way.
  /// @{
  template <class Fill>
  void startScripts(Request& request, Instant deadline, Fill&& fill) {
    fill(request, Script::By::digest);
    server_.start(request, deadline);
  }
  template <class Fill>
  void finishScripts(Request& request, Instant deadline, Fill&& fill) {
    server_.finish(request, deadline);
    if (!lacksScript(request)) return;
    request.clear();
    fill(request, Script::By::text);
    execute(request, deadline);
  }
  /// @}

  /// Of a reply that is 1 or 0.
  bool flagOf(const Request& request, std::size_t index = 0);
  /// What the error reply to a renewal means.
  RenewOutcome failedRenewal(const Reply& error) const;
  /// The same in words.
  std::string faultIn(const Reply& error) const;
  /// Throws what the error reply means; Redirected where a node of a cluster says so. `needs` are the rights
  /// that the command takes.
  [[noreturn]] void refuse(const Reply& error, std::string_view needs = queuePermissions) const;
  /// Ends the request's connection and throws ProtocolError: a reply has a form that no server of ours would
  /// send.
  [[noreturn]] void unexpected(const Request& request);
  /// Ends the connection, and says why, for the same reason.
  std::string leaveForForm(std::uint64_t connection);

  /// Calls `visit` with the keys that start with `prefix`, many at a time, none twice, without lockkeeper's
  /// companions; `type` is what TYPE says of them, or empty for all. `visit` returns false to end it.
  void scan(std::string_view prefix, std::string_view type, Instant deadline,
            const std::function<bool(std::span<const std::string_view> keys)>& visit);

  struct KeyPage {
    std::string next;  ///< Where the next page begins; empty behind the last.
    std::vector<std::string> keys;
  };
  /// One page of such a scan, from `place` on, which is empty or KeyPage::next; it begins anew when another
  /// server, or another start of it, has named the place. May have keys of other pages again.
  KeyPage scanPage(std::string_view prefix, std::string_view type, std::string_view place, Instant deadline);

  const ForkGuard forkGuard;
  RequestPool requests;  ///< For the calls that are made all the time.

 private:
  class Check;

  static bool lacksScript(const Request& request);
  void lookAround(Instant deadline) noexcept;
  void follow(Instant deadline) noexcept;
  void postCheck() noexcept;
  std::string judge(const ServerFacts& facts, std::uint64_t connection, Instant asked);
  void noteRun(const std::string& run, Instant now);
  bool isImporting() const { return options().cluster == ClusterUse::importingNode; }

  const std::function<void()> onNewServer_;
  const std::shared_ptr<Sentinels> sentinels_;  // null when there are none
  const DialRules dialRules_;
  std::atomic<Instant> nextLook_ = Instant::min();
  std::atomic<Instant> nextCheck_ = Instant::max();  // none before a connection has been made
  std::atomic<Instant> masterAt_ = Instant::min();   // when it was asked, and was the master
  std::string run_;                                  // guarded by the multiplexer's mutex
  Multiplexer server_;
};

/// Writes the outcome of renewals that were not answered, by the error that `send` throws.
template <class Send>
void renewAll(std::span<Renewal> renewals, Send&& send) {
  try {
    send();
  } catch (const Error& error) {
    const bool untouched = error.code() == ErrorCode::storeUnavailable || error.code() == ErrorCode::config;
    for (Renewal& each : renewals) {
      each.outcome = untouched ? RenewOutcome::unavailable : RenewOutcome::unknown;
      each.cause = error.what();
    }
  }
}

}  // namespace lockkeeper::redis
