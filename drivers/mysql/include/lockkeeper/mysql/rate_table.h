#pragma once

#include <memory>

#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/mysql/export.h"
#include "lockkeeper/store_uri.h"

namespace lockkeeper::mysql {

/// Rate limits as rows of the table lockkeeper_rates (schema/rates.sql) on MariaDB or MySQL, decided by the
/// server on its own clock. A charge of one bucket or calendar window is one batch of statements in one round
/// trip; several charges, and sliding windows, are one transaction of two round trips that takes the rows in
/// a fixed order. A refusal writes nothing. If others keep a key's row locked until the deadline, the call
/// throws LockTimeout; other keys are not affected.
///
/// It has at most 8 sessions of its own, which are opened when needed. One more ends statements that got no
/// answer in time, so that the server does not wait for a row on behalf of a caller that has given up. It
/// reads the URI's parameters `createTable` and those for the connection, which mean the same as for locks.
/// Thread-safe. After fork() the child's copy throws ForkedError and touches no socket; destroying it leaks
/// it on purpose.
class LOCKKEEPER_MYSQL_EXPORT RateTable : public RateDriver {
 public:
  /// Connects nowhere yet. Throws ConfigError that names the part of the URI which is wrong.
  explicit RateTable(const StoreUri& uri, const Environment& environment = {});
  RateTable(const RateTable&) = delete;
  RateTable& operator=(const RateTable&) = delete;
  ~RateTable() override;

  void take(std::span<RateCharge> charges, Instant deadline) override;
  void peek(std::span<RateCharge> charges, Instant deadline) override;
  bool refund(const RateRefund& refund, Instant deadline) override;
  void reset(std::string_view key, RateKind kind, Instant deadline) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper::mysql
