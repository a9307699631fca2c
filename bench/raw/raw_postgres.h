#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

struct pg_conn;

namespace lockkeeper::bench {

/// The floor of what is done on PostgreSQL: prepared statements, one after the other, by the client library's
/// blocking calls and nothing else. One connection of the user auditor to the database locks, as
/// PostgresServer has them; not thread-safe.
class RawPostgres {
 public:
  /// Values are texts; nullopt for NULL.
  struct Statement {
    std::string text;
    std::vector<std::optional<std::string>> values{};
  };

  /// `settings` are the columns of a SELECT that is asked first. Throws std::runtime_error.
  RawPostgres(std::uint16_t port, std::vector<Statement> statements, const std::string& settings = "");

  /// Throws std::runtime_error unless each statement answered with a row.
  void run();

  /// From now on, awaitNotification() returns when somebody has notified `channel` once more.
  /// @{
  void listen(const std::string& channel);
  void awaitNotification();
  /// @}

 private:
  struct Close {
    void operator()(pg_conn* connection) const;
  };
  struct Prepared {
    std::string name;
    std::vector<const char*> values;
  };

  std::unique_ptr<pg_conn, Close> connection_;
  const std::vector<Statement> statements_;
  std::vector<Prepared> prepared_{};
};

}  // namespace lockkeeper::bench
