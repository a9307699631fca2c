#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lockkeeper/driver/fence_source.h"
#include "lockkeeper/driver/fork_guard.h"
#include "lockkeeper/driver/store_uri.h"
#include "lockkeeper/environment.h"

namespace lockkeeper::mysql {

/// mysql://user:password@host:3306/database: durable fences without a lock, for a lock that lives elsewhere
/// (on a quorum of Redis servers, for one). They are the counter rows of mysql+getlock, and take its
/// parameters but for `fence` and `connections`. One session, opened when needed; one round trip a fence.
/// Thread-safe: callers take turns. After fork() the child's copy throws ForkedError and touches no socket.
class FenceCounter final : public FenceSource {
 public:
  /// Connects nowhere yet. Throws ConfigError for a wrong URI.
  FenceCounter(const StoreUri& uri, const Environment& environment);
  FenceCounter(const FenceCounter&) = delete;
  FenceCounter& operator=(const FenceCounter&) = delete;
  ~FenceCounter() override;

  Fence next(const Claim& claim, bool resend, Instant deadline) override;
  std::optional<Fence> last(std::string_view key, Instant deadline) override;
  FencePromise promise() const override { return FencePromise::durable; }

 private:
  struct State;

  std::optional<Fence> ask(const std::string& statement, Instant deadline);

  const ForkGuard forkGuard_;
  std::unique_ptr<State> state_;
};

}  // namespace lockkeeper::mysql
