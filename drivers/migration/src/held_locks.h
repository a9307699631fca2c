#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/migration/rules.h"

namespace lockkeeper::migration {

/// The locks of this process that may live, and the phase in which each was taken: they keep it. As many
/// entries as there are such locks; those whose lease has ended are swept. Not thread-safe.
class HeldLocks {
 public:
  struct HeldLock {
    std::string key;
    Phase phase;
    Instant end;          ///< Until then it may live; Instant::max() while its request is on its way.
    std::uint64_t lease;  ///< Which lease on single phases its phase was chosen in.
  };

  /// What lives already keeps its phase, when the same claim is sent again.
  HeldLock& note(const Claim& claim, Phase phase, std::uint64_t lease, Instant now);
  /// Null when the claim is not here, or has ended.
  HeldLock* find(const Claim& claim, Instant now);
  void erase(const Claim& claim);

  /// Whether all that may live are in `both` or in the phase that `target` has for their key.
  bool drained(const Rules& target, Instant now) const;
  /// Whether none lives in a single phase.
  bool noneAlone(Instant now) const;

 private:
  struct Hash {
    std::size_t operator()(const Token& token) const noexcept {
      return static_cast<std::size_t>(std::bit_cast<std::array<std::uint64_t, 2>>(token)[0]);  // random bits
    }
  };

  std::unordered_map<Token, HeldLock, Hash> locks_;
  std::size_t sweepAt_ = 1024;
};

}  // namespace lockkeeper::migration
