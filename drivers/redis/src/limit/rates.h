#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "limit/rate_groups.h"
#include "lockkeeper/driver/rate_driver.h"
#include "store/redis_store.h"

namespace lockkeeper::redis {

/// Where a limit's state is kept.
std::string limitKey(std::string_view key, RateKind kind);

/// Rate limits on the connection that the driver's locks use too. The scripts say how a key is kept.
/// Thread-safe.
class Rates {
 public:
  explicit Rates(RedisStore& store);

  /// As RateDriver has them. One round trip, whatever the number of charges.
  /// @{
  void take(std::span<RateCharge> charges, Instant deadline);
  void peek(std::span<RateCharge> charges, Instant deadline);
  /// @}
  bool refund(const RateRefund& refund, Instant deadline);
  void reset(std::string_view key, RateKind kind, Instant deadline);

 private:
  struct Call;
  using Parts = std::vector<std::vector<GroupedCharge*>>;  // of a group, each for one call

  void ask(Request& request, const Call& call, Instant deadline);
  void decideTogether(std::span<RateCharge> charges, std::string_view mode, Instant deadline);
  void decideEach(std::span<GroupedCharge> group, Instant deadline);
  void decideApart(std::span<GroupedCharge* const> group, Instant deadline);
  void decideAlone(GroupedCharge& charge, Instant deadline);
  void decideBySlot(std::span<GroupedCharge> group, Instant deadline);
  void decideAtOnce(const Parts& parts, Instant deadline);
  void concludeEach(std::span<GroupedCharge* const> group, const Request& request, std::size_t call);
  void conclude(RateCharge& charge, const Reply& reply, std::size_t index);
  void check(const Request& request, std::size_t call, std::size_t charges);
  const Reply& accepted(const Reply& reply);

  RedisStore& store_;
  RateGroups groups_;
  std::atomic<Instant> apartUntil_ = Instant::min();  // each caller asks by itself
};

}  // namespace lockkeeper::redis
