#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "lease/leases.h"

namespace lockkeeper::etcd {

/// The lease on which all claims of this process wait. It is short, so that those of a process which has died
/// delay nobody for long, and kept alive by those who wait. Thread-safe.
///
/// A claim that its caller has abandoned would be kept alive with the others. So the lease is given up when
/// it may carry one: nobody keeps it alive from then on, and those who wait move to the next lease.
class WaitingLease {
 public:
  WaitingLease(Leases& leases, Clock& clock) : leases_(leases), clock_(clock) {}

  /// The lease; a new one if there is none. Throws as Leases::grant().
  std::int64_t id(Instant deadline);

  /// The lease, or 0. No I/O.
  std::int64_t current() const;

  /// When keep() must be called next; the end of time when there is no lease.
  Instant due() const;

  /// Keeps it alive. False: it has ended or is given up, and those who wait must read their queues.
  bool keep(Instant deadline);

  /// It may have ended: the next caller of id() finds out.
  void doubt();

  /// Gives up lease `id`, on which a transaction in doubt may put a claim, however late. False: it is not the
  /// present one.
  bool giveUp(std::int64_t id) noexcept;

  /// The caller of this claim has left, and it may still be there, on lease `id`. Unless it is resumed()
  /// within a second, the lease is given up.
  void abandoned(const std::string& claim, std::int64_t id) noexcept;

  /// Somebody waits with it again, or it is removed.
  void resumed(const std::string& claim);

 private:
  bool fresh() const;
  bool overdue() const;
  void clear() noexcept;

  Leases& leases_;
  Clock& clock_;
  mutable std::mutex mutex_;
  Lease lease_;
  Instant triedAt_ = Instant::min();
  std::map<std::string, Instant> abandoned_;  // on this lease, since when
};

}  // namespace lockkeeper::etcd
