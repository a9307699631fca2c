#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

struct st_mysql;
struct st_mysql_stmt;

namespace lockkeeper::bench {

/// The floor of version rows: two statements a pair that change one row, prepared with the client library's
/// own functions, and nothing else. One connection; not thread-safe.
class RawRows {
 public:
  struct Statement {
    std::string text;
    std::vector<std::variant<std::string, std::int64_t>> values{};
  };

  RawRows(std::uint16_t port, const std::string& database, Statement take, Statement free);
  /// Two plain UPDATEs of the row `key` of the table bare_rows, which are made where they do not exist.
  RawRows(std::uint16_t port, const std::string& database, const std::string& key);

  /// Throws std::runtime_error unless both statements changed the row.
  void pair();

 private:
  struct Close {
    void operator()(st_mysql* handle) const;
    void operator()(st_mysql_stmt* statement) const;
  };
  using Prepared = std::unique_ptr<st_mysql_stmt, Close>;

  void run(const std::string& statement);
  Prepared prepare(Statement& statement);
  static void change(st_mysql_stmt* statement);

  std::unique_ptr<st_mysql, Close> handle_;
  Statement takeText_;
  Statement freeText_;
  Prepared take_;
  Prepared free_;
};

}  // namespace lockkeeper::bench
