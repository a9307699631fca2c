#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <mutex>
#include <span>

#include "base/hash_chains.h"
#include "base/time_heap.h"
#include "lock/lease/lease.h"

namespace lockkeeper::detail {

/// The leases of one manager that are alive, by token, end and renewal. Each part has a mutex, so that locks
/// of different keys seldom wait for each other. A part's mutex may be locked while the keeper's is held, but
/// not the other way round. Functions of a part need its mutex held; those of the table need none.
class LeaseTable {
 public:
  struct Part {
    std::mutex mutex;
    TimeHeap<Lease, &Lease::endPlace, &Lease::endTime> ends;              // of all
    TimeHeap<Lease, &Lease::renewalPlace, &Lease::renewalTime> renewals;  // of some
    HashChains<Lease, &Lease::nextByToken, &Lease::tokenHash> byToken;    // all
    HashChains<Lease, &Lease::nextByToken, &Lease::tokenHash> expected;   // those that are not kept yet

    /// Reserves all memory at once, so that neither add() nor a renewal can fail halfway.
    void reserve(std::size_t count);
    void add(Lease& lease);
    void remove(Lease& lease);
    void stopExpecting(Lease& lease) noexcept;  ///< If it is expected.
    Lease* find(const Token& token) const;
    Lease* findExpected(const Token& token) const;
  };

  // By the highest bits of the hash: the chains use the lowest ones.
  Part& partOf(const Token& token) {
    return parts_[hashOf(token) >> (std::numeric_limits<std::size_t>::digits - partBits)];
  }
  std::span<Part> parts() { return parts_; }

  Instant firstRenewal();
  Instant firstEnd();
  bool isEmpty() { return firstEnd() == Instant::max(); }
  std::size_t plannedRenewals();
  /// How many leases are LockState::suspect.
  std::size_t suspects();

 private:
  static constexpr int partBits = 4;

  template <class Heap>
  Instant firstOf(Heap Part::*heap);

  std::array<Part, std::size_t{1} << partBits> parts_;
};

}  // namespace lockkeeper::detail
