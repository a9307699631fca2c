#pragma once

#include <cstdint>
#include <string>

#include "mysql/raw_session.h"

namespace lockkeeper::bench {

/// The floor: two round trips a pair through the client library, GET_LOCK and RELEASE_LOCK of one name as
/// plain text, and in the fenced case a counter's upsert between them in the batch of the first. Not
/// thread-safe.
class RawGetLock {
 public:
  /// Makes the table raw_fences where it does not exist.
  RawGetLock(std::uint16_t port, const std::string& database, const std::string& name);

  /// Throw std::runtime_error unless the lock was taken and freed.
  /// @{
  void pair();
  void fencedPair();
  /// With the driver's own statements, which also ask who answers and whether it is a replica, and write who
  /// has the fence into the driver's table, which must exist.
  void checkedPair();
  void checkedFencedPair();
  /// @}

 private:
  void run(const std::string& claim, const std::string& release, unsigned column);

  RawSession session_;
  std::string claim_;
  std::string fencedClaim_;
  std::string checkedClaim_;
  std::string checkedFencedClaim_;
  std::string release_;
  std::string checkedRelease_;
};

}  // namespace lockkeeper::bench
