#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "store/redis_store.h"
#include "wire/mux/multiplexer.h"

namespace lockkeeper::redis {

/// Asks, with WAIT, how many replicas have what was written. The server answers nothing else on a connection
/// that waits, for up to replicaTimeout; so WAIT has a connection of its own, and a replica that stands still
/// makes no other call late. There is one WAIT at a time; callers that come while it runs share the next one.
/// Thread-safe.
class ReplicaCount {
 public:
  /// With `minReplicas` of 0, it has no connection and must not be asked.
  explicit ReplicaCount(RedisStore& store);

  struct Answer {
    std::int64_t replicas = 0;
    std::string refusal{};  ///< Why the server does not let us ask; empty when it does.
  };

  /// A lock that the store has just granted or renewed.
  struct Written {
    std::string key;
    std::string value;
    bool operator==(const Written&) const = default;
  };
  /// More need not be given: one that is still there is enough.
  static constexpr std::size_t enough = 3;

  /// How many replicas have what was written, and answered, on `connection` (redis::Answer::connection) of
  /// the store, such as `some`, which is not empty: 0 when that one has ended, when WAIT was asked of another
  /// server, or when no answer has come by `latest`.
  Answer having(std::uint64_t connection, std::vector<Written> some, Instant latest);

 private:
  struct Turn;

  bool ask(Turn& turn, Instant latest);
  void addWrites(Request& request, const Turn& turn) const;

  RedisStore& store_;
  std::optional<Multiplexer> server_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool asking_ = false;
  std::shared_ptr<Turn> next_;  // of those that came since the present WAIT was sent
};

}  // namespace lockkeeper::redis
