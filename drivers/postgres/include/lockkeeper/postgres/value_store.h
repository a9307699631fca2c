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

/// Values on PostgreSQL, as rows of a separate table, whose name is that of the locks' table and "_values".
/// They expire by the server's clock; later writes delete expired rows, a few at a time. Takes the URI of a
/// VersionDriver, with its parameters. It has separate connections, so a large value delays no lock. The
/// server sends no message when a value is written: await() does not wait, and its callers poll. Thread-safe.
///
/// After fork() the child's copy throws ForkedError and touches no socket; destroying it leaks it on purpose.
class LOCKKEEPER_POSTGRES_EXPORT PostgresValues final : public ValueStore {
 public:
  /// Does not connect yet. Throws ConfigError that names the wrong part of the URI.
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
