#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "lockkeeper/driver/driver.h"

namespace lockkeeper::migration {

/// The label under which a member's locks are held in the old store: with a '~' behind it. One that is as
/// long as drivers allow has the highest bit of its last byte set instead. An empty one stays empty.
std::string markedLabel(std::string_view label);

/// Whether a member may have this label in the old store. A process that takes no part never has one like it.
bool isMarked(std::string_view label);

/// For people: without the mark, if there is one.
std::string unmarkedLabel(std::string_view label);

/// The old store, with marked labels in all claims, so that a process which takes no part in the migration is
/// not taken for a member that has the same label. Holders are shown as they are in the store.
class MarkedStore final : public LockDriver {
 public:
  explicit MarkedStore(std::shared_ptr<LockDriver> store) : store_(std::move(store)) {}

  AcquireResult acquire(const AcquireRequest& request) override;
  void renew(std::span<Renewal> renewals, Instant deadline) override;
  ReleaseOutcome release(const Claim& claim, Instant deadline) override;
  std::optional<Holder> holder(std::string_view key, Instant deadline) override;
  Promises promises() const override;
  std::string name() const override;

  /// The store's own. Those that take claims would not mark them.
  void* findCapability(const std::type_info& type) noexcept override;
  std::string_view whyNot(const std::type_info& type) const noexcept override;

 private:
  const std::shared_ptr<LockDriver> store_;
};

}  // namespace lockkeeper::migration
