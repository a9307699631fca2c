#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "version/lease_rows.h"

namespace lockkeeper::mysql {

/// The table of locks: of claims that have all of their keys, and of what tells that others share a key. Each
/// statement is one round trip and a transaction of its own.
class LockTable final : public LeaseRows {
 public:
  /// Byte strings, no gap locks, short waits for rows.
  static const char* const setUp;
  /// Reads the table, and answers nothing.
  static std::string read(const std::string& table);

  using LeaseRows::LeaseRows;

  /// The first of so many fences in a row, when the claim holds the key now; else how long the present lease
  /// goes on. A claim that has held it before gets its last fence, and no more of them.
  std::variant<Fence, std::chrono::microseconds> claim(const Claim& claim, std::chrono::milliseconds ttl,
                                                       std::uint32_t fences);

  /// False when the claim does not hold the key.
  bool release(const Claim& claim);

  /// A key that is held, with its holder; one that is shared, only with its limit.
  struct Held {
    std::string key;
    Holder holder;
    std::optional<std::uint32_t> limit;
  };
  std::optional<Held> held(std::string_view key);

  /// Some keys after `after` that start with `prefix` and are held, in order; none when there are no more.
  std::vector<Held> page(std::string_view prefix, const std::string& after);

  /// False when the key is free, or shared.
  bool breakLock(std::string_view key, std::optional<Fence> version);

 private:
  std::optional<Tokens> renewAll(Renewals renewals, SessionPool& cancelling) override;
  std::string update(Renewals renewals) const override;
  std::string select(Renewals renewals) const override;
  /// The columns of a Held, and its condition.
  std::string heldWhere(const std::string& condition) const;
};

}  // namespace lockkeeper::mysql
