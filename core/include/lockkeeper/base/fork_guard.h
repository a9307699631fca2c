#pragma once

#include <cstdint>

#include "lockkeeper/export.h"

namespace lockkeeper {

/// Knows whether it was made before a fork(), in the parent. Then what it guards belongs to the
/// parent: no socket of it may be used, and none closed properly. Thread-safe; costs one atomic load.
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
