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
/// PostgreSQL 14 or later. Of several hosts, the one that takes the writes is used, and looked for again when
/// it has changed; of two that do, the one that was promoted last. A claim is one statement that takes a row
/// which is free or expired and counts its fence up. Claims of several keys, their renewals and their
/// releases are one round trip, too. Leases end on the server's clock. Rows stay for a day, so that fences go
/// on; releases then delete them, a few at a time. Shares of a key are rows of a second table ("_shares"),
/// and those who wait for a key rows of a third one
/// ("_waiters"), in their order; a release notifies the next one. It keeps SharedRecords, too, in a fourth
/// one ("_records"), by a connection of their own that the first call makes.
///
/// URI parameters:
///
///     table          lockkeeper_locks  at most 55 characters
///     schema         public            in which the tables are
///     createTable    off   makes the tables when they are missing
///     connections    4     the most at once, 1 to 256; one more while somebody waits
///     socket         -     the folder of a unix socket, instead of a host
///     tls            off   encrypted, with the server's certificate and host name verified
///     verify         on    off: tls encrypts, whoever the server is
///     caFile         -     PEM file of the authorities that tls trusts, instead of the system's own
///     certFile       -     PEM file of our own certificate, for servers that ask for one
///     keyFile        -     PEM file of its key
///     connectTimeout 2s    for a log-in, with all of its host's addresses
///     ioTimeout      3s    for each question of a claim that waits
///     passwordFile   -     file whose first line is the password, instead of one in the URI
///
/// Behind a pooler that gives transactions to sessions of its own, such as PgBouncer, each transaction says
/// in the same round trip what it depends on, and those who wait poll. There is no background thread. Calls
/// block until their deadline at most, but for the lookup of a host's name. Thread-safe.
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
  /// Connects nowhere yet. Throws ConfigError that names the part of the URI which is wrong.
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

  /// Of the server that was last connected to. Fences are durable when it flushes its commits, and a standby
  /// that takes over has all of them.
  Promises promises() const override;
  std::string name() const override;
  /// RateDriver keeps limits in the table lockkeeper_rates, on sessions of its own.
  void* findCapability(const std::type_info& type) noexcept override;

  void list(std::string_view prefix, const Visit& visit, Instant deadline) override;
  std::vector<std::vector<Waiter>> waiters(std::span<const std::string> keys, Instant deadline) override;
  bool breakLock(std::string_view key, Instant deadline, const Holder* shown = nullptr) override;
  std::vector<Holder> shareHolders(std::string_view key, Instant deadline) override;
  bool resize(std::string_view key, std::uint32_t limit, Instant deadline) override;

  /// Hears of locks that others have broken, at once or, when this process asks the server for nothing,
  /// within a second; not behind a pooler.
  void addLossListener(std::weak_ptr<LossListener> listener) override;

  /// Hears when a server was started since it was last connected to, or another one takes the writes. With
  /// several hosts, all of them are asked for that every two seconds.
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
