#pragma once

#include <cstdint>
#include <memory>
#include <string>

struct st_mysql;

namespace lockkeeper::bench {

/// One connection through the client library that sends statements as plain text, and nothing else. Not
/// thread-safe.
class RawSession {
 public:
  RawSession(std::uint16_t port, const std::string& database);

  /// A column, the first one, of the last result that had a row. Throws std::runtime_error when the server
  /// refuses.
  std::string ask(const std::string& statements, unsigned column = 0);

 private:
  struct Close {
    void operator()(st_mysql* handle) const;
  };

  std::unique_ptr<st_mysql, Close> handle_;
};

}  // namespace lockkeeper::bench
