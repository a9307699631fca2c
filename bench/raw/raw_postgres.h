#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "contest.h"

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

  /// Throws std::runtime_error.
  RawPostgres(std::uint16_t port, std::vector<Statement> statements);

  /// Throws std::runtime_error unless each statement answered with a row.
  void run();

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

/// Runs a thread's statements again and again, on a connection for each thread.
Way barePostgres(std::string name, std::uint16_t port,
                 std::function<std::vector<RawPostgres::Statement>(int thread)> statementsOf);

}  // namespace lockkeeper::bench
