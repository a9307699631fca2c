#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "version/lease_rows.h"

namespace lockkeeper::mysql {

/// The table of shares: of those that are not alone, see LockTable::claimLone(). A share counts as long as
/// the row of its key, in the table of locks, says that the key is shared. So that row looks held to all who
/// know nothing of shares, until the longest lease of a share ends; and all that changes shares of a key
/// locks it first. Each call that changes shares is one transaction that is sent as a whole, so that a client
/// which vanishes keeps no row. It moves a share that was alone here.
class ShareTable final : public LeaseRows {
 public:
  using LeaseRows::LeaseRows;

  /// Makes the table if it is missing, unless `schema` is empty. Throws ConfigError unless it may be used:
  /// most shares do not need it, and a mistake of the configuration is to be found with the first of them.
  void check(const std::string& schema);

  /// What came of a claim.
  struct Answer {
    bool granted = false;
    Fence fence = 0;
    std::optional<std::uint32_t> limit;  ///< That others who share the key have named.
    std::chrono::microseconds wait{0};   ///< Until a lease ends.
  };
  /// Grants the claim its share if it has been granted before, or fits and the key is not closed to it.
  Answer claim(const AcquireRequest& request, LockTexts::Standing standing);

  /// False when the claim has no share.
  bool release(const Claim& claim);

  /// Takes the share from the holder that was shown with this id. False when that one has none.
  bool breakShare(std::string_view key, std::string_view grantId);
  /// Takes their shares from all. False when nobody shares the key.
  bool breakAll(std::string_view key) { return remove(key, "TRUE"); }

  /// False when nobody shares the key.
  bool resize(std::string_view key, std::uint32_t limit);

  /// Deletes shares whose leases have ended, of some keys that perhaps nobody asks for any more. Waits for no
  /// row, and begins with none at `until`.
  void clearEnded(Instant until);

  /// All who share the key. The one whose lease is the longest is the last.
  std::vector<Holder> holders(std::string_view key);

  /// For each of the keys that is shared, the holder whose lease is the longest.
  std::map<std::string, Holder> longest(const std::set<std::string_view>& keys);

 private:
  std::optional<Tokens> renewAll(Renewals renewals, SessionPool& cancelling) override;
  std::string update(Renewals renewals) const override;
  std::string select(Renewals renewals) const override;

  /// Takes the shares that `which` is true of, a condition on the columns of their table. False when there is
  /// none. `orNot` says what if others keep the row of the key.
  bool remove(std::string_view key, const std::string& which, const std::string& orNot = {});

  using Values = std::map<std::string, std::string, std::less<>>;
  /// The text with the values of the names that stand in it in braces.
  std::string filled(std::string_view text, const Values& values) const;
  /// What a name stands for in all texts; there may be names in it.
  std::string_view common(std::string_view name) const;
};

}  // namespace lockkeeper::mysql
