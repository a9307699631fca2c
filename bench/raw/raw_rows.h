#pragma once

#include <cstdint>
#include <memory>
#include <string>

struct st_mysql;
struct st_mysql_stmt;

namespace lockkeeper::bench {

/// The floor of version rows: two conditional UPDATEs of one row a pair, prepared with the client library's
/// own functions, and nothing else. One connection; not thread-safe.
class RawRows {
 public:
  /// Makes the table bare_rows where it does not exist, and the row `key`.
  RawRows(std::uint16_t port, const std::string& database, std::string key);

  /// Throws std::runtime_error unless the row was taken and freed.
  void pair();

 private:
  struct Close {
    void operator()(st_mysql* handle) const;
    void operator()(st_mysql_stmt* statement) const;
  };
  using Statement = std::unique_ptr<st_mysql_stmt, Close>;

  void run(const std::string& statement);
  Statement prepare(const std::string& statement);
  static void updateOne(st_mysql_stmt* statement);

  std::unique_ptr<st_mysql, Close> handle_;
  std::string key_;
  Statement take_;
  Statement free_;
};

}  // namespace lockkeeper::bench
