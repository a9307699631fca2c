#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/losses.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/migration/export.h"
#include "lockkeeper/migration/migration_options.h"
#include "lockkeeper/migration/state_store.h"
#include "lockkeeper/store/shared_records.h"

namespace lockkeeper::migration {

class Membership;

/// Moves a live fleet from one lock store to another: takes each lock in the old store, in both, or in the
/// new one, by rules that change while the processes run. Processes agree through a store that keeps the
/// migration's state, so that no two of them ever hold a key in stores that do not overlap: docs/migrating.md
/// for users, docs/adr/0021 for why.
///
/// A lock keeps the phase it was taken in until it is released. In `both` a claim holds the key when both
/// stores have granted it, and has lost it when either has. Fences are the new store's; locks taken in the
/// old store alone have none, so that a fence never goes back when phases change.
///
/// The first lock joins the migration and starts one thread, which sends heartbeats. Blocks as its parts do,
/// two of them one after the other within one deadline. Thread-safe. After fork() the child's copy throws
/// ForkedError.
class LOCKKEEPER_MIGRATION_EXPORT MigratingDriver final : public LockDriver,
                                                          public LossReporting,
                                                          public Browsable {
 public:
  /// Connects nowhere yet. Throws std::invalid_argument when a part is missing or both stores are the same
  /// object, or for options out of range.
  MigratingDriver(std::shared_ptr<LockDriver> oldStore, std::shared_ptr<LockDriver> newStore,
                  std::shared_ptr<SharedRecords> records, MigrationOptions options = {},
                  Environment environment = {});
  MigratingDriver(const MigratingDriver&) = delete;
  MigratingDriver& operator=(const MigratingDriver&) = delete;
  /// Leaves the migration, unless locks in a single store may still live. Blocks for a second at most: when
  /// the state's store takes longer, a thread goes on by itself, and keeps the stores until it has ended.
  ~MigratingDriver() override;

  /// Throws std::invalid_argument for a ttl above MigrationOptions::maxTtl.
  AcquireResult acquire(const AcquireRequest& request) override;
  void renew(std::span<Renewal> renewals, Instant deadline) override;
  ReleaseOutcome release(const Claim& claim, Instant deadline) override;
  std::optional<Holder> holder(std::string_view key, Instant deadline) override;

  /// Fences are promised while no rule puts keys into the old store alone.
  Promises promises() const override;
  std::string name() const override;

  /// A loss in either store is a loss of the lock.
  void addLossListener(std::weak_ptr<LossListener> listener) override;

  /// The locks of both stores; a key that is in both, once, as the new store shows it. Joins nothing.
  void list(std::string_view prefix,
            const std::function<bool(std::string_view key, const Holder& holder)>& visit,
            Instant deadline) override;

  /// What the processes of the migration have agreed on. Reads one table of the state's store, and joins
  /// nothing. Throws as StateStore does.
  MigrationState state(Instant deadline);

  /// As they were given.
  const MigrationOptions& options() const noexcept { return options_; }

  /// MigratingDriver itself, LossReporting when either store has it, Browsable when both have.
  void* findCapability(const std::type_info& type) noexcept override;
  std::string_view whyNot(const std::type_info& type) const noexcept override;

 private:
  AcquireResult acquireIn(Phase phase, const AcquireRequest& request);
  AcquireResult acquireOld(const AcquireRequest& request);
  AcquireResult acquireBoth(const AcquireRequest& request);
  void giveBack(LockDriver& store, const Claim& claim, Instant deadline);
  void checkApart(const AcquireRequest& request);
  void lookWhoHolds(const AcquireRequest& request);

  const ForkGuard forkGuard_;
  const MigrationOptions options_;
  const Environment environment_;
  const std::shared_ptr<LockDriver> oldStore_;
  const std::shared_ptr<LockDriver> newStore_;
  std::atomic<bool> apart_{false};  // the stores are known to be two
  std::shared_ptr<Membership> membership_;
};

}  // namespace lockkeeper::migration
