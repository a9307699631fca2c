#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lock/lock_texts.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "session/sessions.h"

namespace lockkeeper::postgres {

/// As what a claim asks for a key: the place of one that waits in the queue, or none for a newcomer, who
/// leaves alone a key that somebody waits for.
using Place = std::optional<std::int64_t>;

/// The place of an upgrade that does not wait yet, ahead of all others. Those of upgrades that wait come
/// after it, in their order.
inline constexpr std::int64_t aheadOfAll = -4'000'000'000'000'000'000;

/// The tables of locks, shares and waiters. Each call is one round trip and one transaction. All throw what
/// Session says. Thread-safe.
class LockTable {
 public:
  LockTable(Sessions& sessions, const LockTexts& texts) : sessions_(sessions), texts_(texts) {}

  AcquireResult claim(const AcquireRequest& request, const Place& place);
  std::vector<AcquireResult> claimInOrder(std::span<const AcquireRequest> requests);
  void renew(std::span<Renewal* const> renewals, bool isShares, Instant deadline);
  bool release(const Claim& claim, Instant deadline);
  std::vector<ReleaseOutcome> releaseAll(std::span<const Claim> claims, Instant deadline);

  /// Takes a place in the queue of the key for so long, or, with `isKept`, keeps the one that it has.
  std::int64_t enterQueue(const Claim& claim, bool isAhead, std::chrono::milliseconds stays, Instant deadline,
                          bool isKept);
  /// The next one may go on.
  void leaveQueue(const Claim& claim, Instant deadline);
  std::vector<std::vector<Waiter>> waiters(std::span<const std::string> keys, Instant deadline);

  /// All who hold the key, the one with the longest lease first.
  std::vector<Holder> holders(std::string_view key, Instant deadline);
  struct Held {
    std::string key;
    Holder holder;
  };
  /// Some keys behind `after`, each with one holder; none when there are no more.
  std::vector<Held> page(std::string_view prefix, std::string_view after, Instant deadline);
  bool breakLock(std::string_view key, const Holder* shown, Instant deadline);
  bool resize(std::string_view key, std::uint32_t limit, Instant deadline);

  void clearUnused(Instant deadline);

 private:
  AcquireResult claimWhole(Session& session, const AcquireRequest& request, const Place& place);
  AcquireResult claimShare(Session& session, const AcquireRequest& request, const Place& place);

  Sessions& sessions_;
  const LockTexts& texts_;
};

}  // namespace lockkeeper::postgres
