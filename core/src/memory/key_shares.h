#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "lockkeeper/driver/driver.h"

namespace lockkeeper::detail {

/// Who has a share of one key of the memory driver, whose mutex guards it. No call takes longer than the
/// logarithm of the number of holders.
class KeyShares {
 public:
  struct Grant {
    std::string owner;
    Share share;
    Fence fence;
    std::uint64_t number;  ///< No other grant of the store has it.
    Instant end{};

    Holder holder(Instant now) const;
  };

  explicit KeyShares(std::uint32_t limit) : limit_(limit) {}

  std::uint32_t limit() const { return limit_; }
  void resize(std::uint32_t limit) { limit_ = limit; }
  bool fits(const Share& share) const {
    return share.limit == limit_ && share.weight <= limit_ && used_ <= limit_ - share.weight;
  }

  /// Whether nobody else can have a share beside those that have one and this one.
  bool isFullWith(const Share& share) const { return used_ + share.weight >= limit_; }

  bool empty() const { return grants_.empty(); }
  /// When the lease ends that ends first, or last. Not while it is empty.
  Instant firstEnd() const { return ends_.begin()->first; }
  const Grant& last() const { return grants_.at(ends_.rbegin()->second); }
  const std::map<Token, Grant>& grants() const { return grants_; }

  /// Null when that claim has none.
  const Grant* find(const Token& token) const;
  /// Of a claim that has none.
  void add(const Token& token, Grant grant);
  /// Its lease ends then. False when that claim has no share.
  bool extend(const Token& token, Instant end);
  bool remove(const Token& token);
  /// Those whose lease has ended by `now`.
  void removeEnded(Instant now);

 private:
  std::uint32_t limit_;
  std::uint32_t used_ = 0;  // may be more, after resize()
  std::map<Token, Grant> grants_;
  std::set<std::pair<Instant, Token>> ends_;
};

}  // namespace lockkeeper::detail
