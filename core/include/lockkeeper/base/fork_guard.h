#pragma once

#include <cstdint>

#include "lockkeeper/export.h"

namespace lockkeeper {

/// Tells whether it was made by a parent process, before a fork(). If so, what it guards belongs to the
/// parent: close its sockets with close(), but send nothing on them, not even a farewell. Thread-safe; costs
/// one atomic load.
class LOCKKEEPER_CORE_EXPORT ForkGuard {
 public:
  ForkGuard() noexcept;

  /// True in a child of the process that made it.
  bool inherited() const noexcept;

  /// For drivers: throws ForkedError when inherited.
  void check() const;

 private:
  std::uint64_t generation_;
};

}  // namespace lockkeeper
