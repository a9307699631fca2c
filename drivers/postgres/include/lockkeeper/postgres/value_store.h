#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lockkeeper/environment.h"
#include "lockkeeper/postgres/export.h"
#include "lockkeeper/store/value_store.h"
#include "lockkeeper/store_uri.h"

namespace lockkeeper::postgres {

/// Values on PostgreSQL: rows of a table of their own, which has the name of the locks' table and "_values".
/// They end on the server's clock; writes then delete their rows, some at a time. Takes the URI of a
/// VersionDriver, with its parameters, and has connections of its own, so that large values delay no lock. A
/// client that waits for a value looks again and again: await() does not wait. Thread-safe.
///
/// After fork() the child's copy throws ForkedError and touches no socket; destroying it leaks it on purpose.
class LOCKKEEPER_POSTGRES_EXPORT PostgresValues final : public ValueStore {
 public:
  /// Connects nowhere yet. Throws ConfigError that names the part of the URI which is wrong.
  explicit PostgresValues(const StoreUri& uri, const Environment& environment = {});
  PostgresValues(const PostgresValues&) = delete;
  PostgresValues& operator=(const PostgresValues&) = delete;
  ~PostgresValues() override;

  std::optional<std::string> get(std::string_view key, Instant deadline) override;
  void put(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
           Instant deadline) override;
  bool add(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
           Instant deadline) override;
  bool erase(std::string_view key, Instant deadline) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper::postgres
