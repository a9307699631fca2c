#pragma once

#include <cstdint>
#include <memory>
#include <string>

struct st_mysql;

namespace lockkeeper::bench {

/// The floor: two round trips a pair through the client library, GET_LOCK and RELEASE_LOCK as plain text, and
/// in the fenced case the counter's upsert between them in the batch of the first. Not thread-safe.
class RawGetLock {
 public:
  RawGetLock(std::uint16_t port, const std::string& database);

  /// Throws std::runtime_error unless the lock was taken and freed.
  void pair(const std::string& name);
  void fencedPair(const std::string& name);

 private:
  struct Close {
    void operator()(st_mysql* handle) const;
  };
  /// The first column of the last result.
  std::string ask(const std::string& statements);

  std::unique_ptr<st_mysql, Close> handle_;
};

}  // namespace lockkeeper::bench
