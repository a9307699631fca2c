#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/redis/export.h"
#include "lockkeeper/redis/legacy_options.h"

namespace lockkeeper::redis {

/// The kinds of keys that an audit finds.
enum class LegacyClass {
  held,     ///< A legacy client's lock that has not expired, though its client may be gone.
  expired,  ///< A lock that has expired, and whose TTL will remove it.
  phantom,  ///< A lock that has expired and has no TTL: it stays until somebody takes it over.
  foreign,  ///< Not a value of the scheme: never taken over.
  ours,     ///< With a token: of lockkeeper, or of a client that was changed to write one.
};

/// In words, for an audit's report.
LOCKKEEPER_REDIS_EXPORT const char* toString(LegacyClass kind) noexcept;

/// One key under the prefix. The texts are valid only during the visit.
struct LegacyKey {
  std::string_view key;  ///< Without the prefix.
  LegacyClass kind;
  std::string owner;  ///< Of ours: the label.
  std::string
      what;  ///< Of a value that is not as the scheme has it: what it looks like, without its content.
  /// The time until the lock ends according to its value; negative if it has ended. Of a foreign value, its
  /// TTL, if it has one.
  std::optional<std::chrono::milliseconds> remaining;
};

/// `redis+legacy`: shares the locks of services that keep the unix time at which a lock ends in a key, by
/// SETNX, GETSET and DEL. They and this driver exclude each other as far as that scheme can. The driver
/// writes "<unix seconds>:<token>@<owner>", on the server's time, with a TTL. It takes over an expired value
/// by comparing and setting in one step, and renews and releases only its own values. If its value has
/// changed or is gone, the outcome is ownerUnknown and the key stays as it is. docs/drivers/legacy.md lists
/// the races that remain.
///
/// A lease lasts up to 2.5 s longer in the store than its ttl. Grants carry no fence. All threads share one
/// connection, and after fork() it behaves, as with RedisDriver. Thread-safe.
class LOCKKEEPER_REDIS_EXPORT LegacyRedisDriver final : public LockDriver,
                                                        public Browsable,
                                                        public Breakable {
 public:
  /// Connects nowhere yet. Throws std::invalid_argument for options out of range, ConfigError for a CA
  /// file that cannot be used.
  explicit LegacyRedisDriver(LegacyOptions options, Environment environment = {});
  LegacyRedisDriver(const LegacyRedisDriver&) = delete;
  LegacyRedisDriver& operator=(const LegacyRedisDriver&) = delete;
  ~LegacyRedisDriver() override;

  /// A foreign value is Busy for ever and is reported to the Listener (EventKind::noted).
  AcquireResult acquire(const AcquireRequest& request) override;
  void renew(std::span<Renewal> renewals, Instant deadline) override;
  ReleaseOutcome release(const Claim& claim, Instant deadline) override;

  /// Also empty for an expired value, which stays where it is.
  std::optional<Holder> holder(std::string_view key, Instant deadline) override;
  Promises promises() const override;
  std::string name() const override;

  /// Also LegacyRedisDriver itself, for audit() behind a decorator.
  void* findCapability(const std::type_info& type) noexcept override {
    return capabilityOf<Browsable, Breakable, LegacyRedisDriver>(*this, type);
  }
  std::string_view whyNot(const std::type_info& type) const noexcept override {
    return type == typeid(Permits) ? "its values hold one time stamp, of one holder" : "";
  }

  /// Lists the locks of legacy clients and of ours, not foreign values.
  void list(std::string_view prefix, const Visit& visit, Instant deadline) override;
  std::string listBusy(std::string_view place, const std::function<bool(std::string_view key)>& wanted,
                       const Visit& visit, Instant deadline) override;

  bool breakLock(std::string_view key, Instant deadline, const Holder* shown = nullptr) override;

  /// Like list(), but visits every key under the prefix, whatever it contains. Only reads; goes through the
  /// whole database by SCAN.
  void audit(std::string_view prefix, const std::function<bool(const LegacyKey& key)>& visit,
             Instant deadline);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper::redis
