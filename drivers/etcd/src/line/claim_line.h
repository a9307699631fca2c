#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/claim.h"
#include "store/etcd_store.h"
#include "store/messages.h"

namespace lockkeeper::etcd {

/// One claim of those for a key.
struct LineClaim {
  Entry entry;
  ValueText text;
  bool granted = false;
};

/// What must be removed before a claim has its turn.
struct Obstacles {
  struct Weight {
    std::int64_t created = 0;
    std::uint64_t permits = 0;
  };
  std::map<std::string, Weight> claims{};  ///< By their keys.
  std::uint64_t needed = 0;                ///< So many permits of them; 0: its turn has come.
};

/// The claims for a key, from the first one on, in the order in which they were made. Those hold it that are
/// at the front and fit beside each other: one alone that has all of the key, or shares. A share's value says
/// whether it is granted, since it keeps its permits when there come to be fewer of them.
///
/// What is no claim of ours counts as one that has all of the key, wherever it stands.
class ClaimLine {
 public:
  explicit ClaimLine(std::vector<Entry> claims);

  const std::vector<LineClaim>& claims() const { return claims_; }

  /// What keeps a share behind all of these from its turn; with `ahead`, of those that hold the key only. Who
  /// waits for another limit of permits is waited for.
  Obstacles before(const Share& share, bool ahead = false) const;

  /// The limit that holders have, if it is not that of `share`: the first granted share has it. One behind it
  /// may be about to be withdrawn.
  std::optional<std::uint32_t> otherLimit(const Share& share) const;

  /// Those who wait.
  std::vector<Entry> waiting() const;

 private:
  std::vector<LineClaim> claims_;
};

/// How many claims are read at a time before a share: enough for most keys, and few where many wait.
std::size_t pageFor(const Share& share);

/// The claims before `created`, of which `page` is the first pageFor(): as far as it takes to tell a share
/// behind them whether it has its turn, and otherwise of about how many it must wait for. All with `whole`.
/// Throws as EtcdStore::execute().
ClaimLine readOn(EtcdStore& store, std::string_view key, std::vector<Entry> page, const Share& share,
                 std::int64_t created, bool whole, Instant deadline);

/// All claims for a key, which are read a page at a time: they may be of different moments. Throws as
/// EtcdStore::execute().
ClaimLine readAll(EtcdStore& store, std::string_view key, Instant deadline);

/// How many permits a claim counts for in the eyes of a share behind it.
std::uint64_t permitsOf(const LineClaim& claim, const Share& asking);

}  // namespace lockkeeper::etcd
