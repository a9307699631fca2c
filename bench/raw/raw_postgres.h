#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct pg_conn;

namespace lockkeeper::bench {

/// The floor of version rows on PostgreSQL: two prepared statements a pair, by the client library's blocking
/// calls and nothing else. One connection; not thread-safe.
class RawPostgres {
 public:
  /// Values are texts; NULL where there is none. Each statement must answer with a row.
  struct Statement {
    std::string text;
    std::vector<const char*> values{};
  };

  /// Throws std::runtime_error. `address` is the client library's: "host=… port=… …".
  RawPostgres(const std::string& address, const Statement& take, const Statement& free, std::string key,
              std::string token);

  /// Throws std::runtime_error unless both statements answered with a row.
  void pair();

 private:
  struct Close {
    void operator()(pg_conn* connection) const;
  };
  void prepare(const char* name, const Statement& statement);
  void run(const char* name, std::vector<const char*> values);

  std::unique_ptr<pg_conn, Close> connection_;
  const std::string key_;
  const std::string token_;
  const std::vector<const char*> takeValues_;
  const std::vector<const char*> freeValues_;
};

}  // namespace lockkeeper::bench
