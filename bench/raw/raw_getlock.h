#pragma once

#include <cstdint>
#include <string>

#include "raw_session.h"

namespace lockkeeper::bench {

/// The floor: two round trips a pair through the client library, GET_LOCK and RELEASE_LOCK as plain text, and
/// in the fenced case the counter's upsert between them in the batch of the first. Not thread-safe.
class RawGetLock {
 public:
  RawGetLock(std::uint16_t port, const std::string& database);

  /// Throws std::runtime_error unless the lock was taken and freed.
  void pair(const std::string& name);
  /// As pair(), with the driver's own statements, which also ask who answers, and whether it is a replica.
  void checkedPair(const std::string& name);
  void fencedPair(const std::string& name);

 private:
  RawSession session_;
};

}  // namespace lockkeeper::bench
