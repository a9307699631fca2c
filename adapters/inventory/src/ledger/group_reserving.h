#pragma once

#include <chrono>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "combine/known_splits.h"
#include "ledger/reservation_work.h"

namespace lockkeeper::inventory {

/// One caller's cart, and what becomes of it.
struct PlacedReservation {
  std::vector<CartLine> cart{};  ///< Ordered by sku, and names none twice.
  std::chrono::milliseconds ttl{};
  std::string id{};
  CartRule rule = CartRule::all;
  /// Null unless the cart is to replace the lines of a reservation that is held: then their articles are
  /// written here, also when the call fails. Such a cart is placed alone.
  std::vector<std::string>* formerSkus = nullptr;
  std::optional<Reservation> result{};  ///< Without a failure empty when what has the id has expired.
  std::exception_ptr failure{};
  bool inDoubt = false;  ///< A COMMIT of which nobody has seen what became of it may have reserved it.

  const std::string& sku() const { return cart.front().sku; }
  bool replaces() const { return formerSkus != nullptr; }
};

/// Reserves carts as one transaction, as if they had come one by one.
class GroupReserving {
 public:
  /// `carts` are in the order in which they came, one at least, and all of one and the same article if they
  /// are several. No attempt begins after `latest`, and none goes on. `who` is for the ledger. `isScarce`:
  /// there is too little for all of them, as far as one knows; then it is not tried to take for all at once.
  GroupReserving(Database& database, KnownSplits& splits, const std::string& who,
                 std::span<PlacedReservation* const> carts, Instant latest, bool isScarce = false)
      : database_(database),
        splits_(splits),
        who_(who),
        carts_(carts),
        latest_(latest),
        isScarce_(isScarce) {}

  /// Gives each cart a result or a failure: OutcomeUnknown of one that may be reserved, otherwise what the
  /// database throws.
  void run();

  /// Whether one of them was refused for its first article.
  bool foundTooLittle() const;

 private:
  using Articles = std::map<std::string, Article>;

  bool takeAll();
  bool takeEach(bool gather);
  std::optional<std::vector<ReservedLine>> answerEach(ReservationWork& work, Articles& articles);
  std::vector<std::string> skusToHold();
  static bool answer(PlacedReservation& cart, std::span<const ReservedLine> lines);
  void countFormer(std::span<const ReservedLine> lines, Articles& articles);
  std::exception_ptr failureOfDeleted(const std::string& id) const;
  std::optional<Reservation> decide(ReservationWork& work, Articles& articles, const PlacedReservation& cart);
  void commit(ReservationWork& work);

  Database& database_;
  KnownSplits& splits_;
  const std::string& who_;
  const std::span<PlacedReservation* const> carts_;
  const Instant latest_;
  const bool isScarce_;
  bool isRejected_ = false;  // by rows that nobody has seen: perhaps of the ledger alone

  // In the transaction under way:
  bool tellsOfCommits_ = false;
  std::set<std::string> swept_{};              // nothing else of them has expired
  std::map<std::string, Buckets> gathered_{};  // the articles whose buckets it holds
  bool lacksBuckets_ = false;                  // there is too little without the buckets of others
  std::vector<ReservedLine> former_{};         // the lines that are to be replaced
};

}  // namespace lockkeeper::inventory
