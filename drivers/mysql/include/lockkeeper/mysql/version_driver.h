#pragma once

#include <cstdint>
#include <functional>
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
#include "lockkeeper/driver/queue.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/mysql/export.h"
#include "lockkeeper/store_uri.h"

namespace lockkeeper::mysql {

/// `mysql+version://user:password@host[:3306][,host2[:3306],…]/database`: locks as rows of an InnoDB table on
/// MariaDB or MySQL. Of several hosts, the driver uses the one that accepts writes, and looks it up again
/// when it has changed. A claim is one statement that takes a row that is free or expired and increments its
/// version; the version is the fence. Claims of several keys, and their releases, are one transaction. Leases
/// end on the server's clock, in microseconds. Rows stay for a day, so that versions continue; later calls
/// delete them, a few at a time. Several shares of one key are rows of a second table, whose name ends with
/// "_shares". Waiters wait in the server's queue for a name (GET_LOCK), and only the first of them polls the
/// row.
///
/// URI parameters: `table` (lockkeeper_locks), `createTable` (off; on creates missing tables, that of shares
/// with the first share), `connections` (8: how many may be open at once, 1 to 256; in addition, as many for
/// claims that wait, and one that ends what waits for too long), and those of mysql+getlock for the
/// connection.
///
/// Connections are made when calls need them, and only with a server that accepts writes and is not part of a
/// cluster in which all nodes do. One thread cuts off calls whose deadline has passed; with several hosts,
/// there is one more for each login under way. The destructor waits for these, for connectTimeout at most.
/// Thread-safe.
///
/// After fork() the child's copy throws ForkedError and touches no socket; destroying it leaks it on purpose.
class LOCKKEEPER_MYSQL_EXPORT VersionDriver final : public LockDriver,
                                                    public Waitable,
                                                    public Batchable,
                                                    public BatchReleasing,
                                                    public Browsable,
                                                    public Breakable,
                                                    public Permits {
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

  /// The durability is that of the server that was connected last.
  Promises promises() const override;
  std::string name() const override;
  /// RateDriver is a RateTable of the same URI.
  void* findCapability(const std::type_info& type) noexcept override;

  void list(std::string_view prefix, const Visit& visit, Instant deadline) override;

  bool breakLock(std::string_view key, Instant deadline, const Holder* shown = nullptr) override;

  std::vector<Holder> shareHolders(std::string_view key, Instant deadline) override;
  bool resize(std::string_view key, std::uint32_t limit, Instant deadline) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper::mysql
