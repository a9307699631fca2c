#pragma once

namespace lockkeeper::redis {

/// Knows whether it was made before a fork(), in the parent: then what it guards belongs to the parent.
class ForkGuard {
 public:
  ForkGuard() noexcept;

  bool inherited() const noexcept;

  /// Throws ForkedError when inherited.
  void check() const;

 private:
  const unsigned generation_;
};

}  // namespace lockkeeper::redis
