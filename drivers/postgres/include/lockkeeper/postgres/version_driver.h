#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/driver/batches.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/losses.h"
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/postgres/export.h"
#include "lockkeeper/store_uri.h"

namespace lockkeeper::postgres {

/// `postgres+version://user:password@host[:5432][,host2[:5432],…]/database`: locks as rows of a table on
/// PostgreSQL 14 or later. Of several hosts, it uses the one that takes the writes (of two, the one that was
/// promoted last), and looks for it again after a failover. A claim is one statement: it takes a row that is
/// free or expired, and increases its fence. To claim, renew or release several keys also takes one round
/// trip. Leases expire by the server's clock. Rows stay for a day, so that fences keep growing; then releases
/// delete them, a few at a time. Shares of a key are rows of a second table ("_shares"). Waiters are rows of
/// a third one ("_waiters"), in their order; a release notifies the next one. SharedRecords are rows of a
/// fourth one ("_records"), and use a separate connection, which their first call opens.
///
/// URI parameters:
///
///     table          lockkeeper_locks  at most 55 characters
///     schema         public            of the tables
///     createTable    off   on: creates the tables if they are missing
///     connections    4     the most at once, 1 to 256; one more while a thread waits
///     socket         -     the folder of a unix socket, instead of a host
///     tls            off   on: encrypts, and verifies the server's certificate and host name
///     verify         on    off: tls encrypts without verifying the server
///     caFile         -     PEM file of the authorities to trust, instead of the system's
///     certFile       -     PEM file of the client certificate, for servers that ask for one
///     keyFile        -     PEM file of its key
///     connectTimeout 2s    for a login, with all addresses of the host
///     ioTimeout      3s    for each request of a waiting claim
///     passwordFile   -     file whose first line is the password, instead of one in the URI
///
/// Behind a transaction pooler, such as PgBouncer, each transaction sends its settings in the same round
/// trip, and waiters poll. There is no background thread. Calls end by their deadline, except for the lookup
/// of a host's name. Thread-safe.
///
/// After fork() the child's copy throws ForkedError and touches no socket; destroying it leaks it on purpose.
class LOCKKEEPER_POSTGRES_EXPORT VersionDriver final : public LockDriver,
                                                       public Waitable,
                                                       public Batchable,
                                                       public BatchReleasing,
                                                       public Browsable,
                                                       public WaiterBrowsable,
                                                       public Breakable,
                                                       public Permits,
                                                       public LossReporting,
                                                       public DoubtReporting {
 public:
  /// Does not connect yet. Throws ConfigError that names the wrong part of the URI.
  explicit VersionDriver(const StoreUri& uri, const Environment& environment = {});
  VersionDriver(const VersionDriver&) = delete;
  VersionDriver& operator=(const VersionDriver&) = delete;
  ~VersionDriver() override;

  AcquireResult acquire(const AcquireRequest& request) override;
  AcquireResult acquireWaiting(const AcquireRequest& request, std::chrono::nanoseconds waitFor,
                               std::stop_token stop) override;
  std::vector<AcquireResult> acquireInOrder(std::span<const AcquireRequest> requests) override;
  void renew(std::span<Renewal> renewals, Instant deadline) override;
  ReleaseOutcome release(const Claim& claim, Instant deadline) override;
  std::vector<ReleaseOutcome> releaseAll(std::span<const Claim> claims, Instant deadline) override;
  std::optional<Holder> holder(std::string_view key, Instant deadline) override;

  /// What the last server promises. Fences are durable if it flushes its commits and any standby that may
  /// take over has all of them.
  Promises promises() const override;
  std::string name() const override;
  /// RateDriver keeps limits in the table lockkeeper_rates, and has separate connections.
  void* findCapability(const std::type_info& type) noexcept override;

  void list(std::string_view prefix, const Visit& visit, Instant deadline) override;
  std::vector<std::vector<Waiter>> waiters(std::span<const std::string> keys, Instant deadline) override;
  bool breakLock(std::string_view key, Instant deadline, const Holder* shown = nullptr) override;
  std::vector<Holder> shareHolders(std::string_view key, Instant deadline) override;
  bool resize(std::string_view key, std::uint32_t limit, Instant deadline) override;

  /// Reports locks that other clients break: with the next reply of the server, or within a second. Behind a
  /// pooler, only renewals find out.
  void addLossListener(std::weak_ptr<LossListener> listener) override;

  /// Reports doubt when the server was restarted since the last connection, or when another one takes the
  /// writes. With several hosts, checkServer() asks all of them, every two seconds; it connects to a single
  /// one anew every ten.
  /// @{
  void addDoubtListener(std::weak_ptr<LossListener> listener) override;
  std::optional<std::chrono::milliseconds> checkEvery() const override;
  void checkServer(Instant deadline) noexcept override;
  /// @}

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper::postgres
