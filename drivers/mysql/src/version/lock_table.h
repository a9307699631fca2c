#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "version/lease_rows.h"

namespace lockkeeper::mysql {

/// The table of locks: of claims that have all of their keys, of shares without others, and of what tells
/// that several share a key. Each statement is one round trip and a transaction of its own, except for those
/// on several keys.
class LockTable final : public LeaseRows {
 public:
  /// Reads the table, and answers nothing.
  static std::string read(const std::string& table);

  using LeaseRows::LeaseRows;

  /// Fences in a row, of a claim that holds the key now.
  struct Fences {
    Fence first;
    std::uint32_t count = 1;
  };
  /// Otherwise, how long the present lease goes on, or how long at most the key is kept for one that waits.
  using Answer = std::variant<Fences, std::chrono::microseconds>;

  /// Asks for the key, with so many fences. A claim that is found to hold it already gets one: the last that
  /// it had.
  Answer claim(const Claim& claim, std::chrono::milliseconds ttl, std::uint32_t fences,
               LockTexts::Standing standing);

  /// The same for a share, with one fence. How long the key stays taken is 0 when it has to be shared, which
  /// is up to the table of shares.
  Answer claimLone(const Claim& claim, std::chrono::milliseconds ttl, LockTexts::Standing standing);

  /// What changes when somebody gets the key, or lets go of it or of a share of it, whose lease has not
  /// ended. Waits for no row.
  std::string stateOf(std::string_view key);

  /// Takes the mark of a waiter from the row that has written one as `standing`.
  void unmark(std::string_view key, LockTexts::Standing standing);

  /// As claim(), for several keys, which come in the order of their bytes and have one fence each: until the
  /// first one that is busy. The rows are locked in that order, as all who lock several do. One transaction,
  /// which is sent as a whole: a client that stands still keeps no row. `cancelling` ends it when somebody
  /// else keeps a row for too long.
  std::vector<Answer> claimInOrder(std::span<const AcquireRequest> requests, SessionPool& cancelling);

  /// The tokens of those that are held in this table now. Waits for no row.
  Tokens heldOf(std::span<Renewal* const> renewals) { return tokensIn(ask(select(renewals))); }

  /// False when the claim does not hold the key.
  bool release(const Claim& claim);

  /// The same for several, which differ in their keys and in their tokens, in one transaction as above.
  std::vector<bool> releaseAll(std::span<const Claim> claims, SessionPool& cancelling);

  /// A key that is held, with its holder, unless all of its holders are in the table of shares.
  struct Held {
    std::string key;
    Holder holder;
    bool inShares = false;

    bool shared() const { return inShares || holder.share; }
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
  /// Runs the statements as one transaction.
  const Reply& transact(const std::string& statements, SessionPool& cancelling);
  /// The columns of a Held, and its condition.
  std::string heldWhere(const std::string& condition) const;
};

}  // namespace lockkeeper::mysql
