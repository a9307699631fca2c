#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/store/fence_source.h"
#include "lockkeeper/store_uri.h"

namespace lockkeeper::mysql {

struct ServerOptions;

/// The counter rows of fences. For claims of mysql+getlock whose session holds other locks, too, so that a
/// commit which stalls holds up none of them; and, as mysql://user:password@host:3306/database, for a lock
/// that lives elsewhere (on a quorum of Redis servers, for one): then it takes mysql+getlock's parameters but
/// for `fence` and `connections`. Sessions are opened when needed; one round trip a fence. Thread-safe. After
/// fork() the child's copy throws ForkedError and touches no socket.
class FenceCounter final : public FenceSource {
 public:
  /// Connects nowhere yet. Throws ConfigError for a wrong URI.
  FenceCounter(const StoreUri& uri, const Environment& environment);
  /// With at most so many sessions.
  FenceCounter(const ServerOptions& options, std::size_t sessions, const Environment& environment);
  FenceCounter(const FenceCounter&) = delete;
  FenceCounter& operator=(const FenceCounter&) = delete;
  ~FenceCounter() override;

  Fence next(const Claim& claim, bool resend, Instant deadline) override;
  std::optional<Fence> last(std::string_view key, Instant deadline) override;
  FencePromise promise() const override;

  struct Drawn {
    Fence first;
    std::string server;  ///< As ServerSession::server() says.
  };
  /// The next `count`, for a claim that `session` of the server holds.
  Drawn next(const Claim& claim, bool resend, std::uint32_t count, std::uint64_t session, Instant deadline);

 private:
  struct State;

  const ForkGuard forkGuard_;
  std::unique_ptr<State> state_;
};

}  // namespace lockkeeper::mysql
