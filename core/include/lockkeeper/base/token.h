#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <span>
#include <string>

#include "lockkeeper/base/random.h"
#include "lockkeeper/export.h"

namespace lockkeeper {

/// The secret that proves ownership of one grant: 128 random bits, used once. Whoever knows it can release
/// the lock, so it goes to the store and nowhere else: it has no stream operator, and no message contains it.
class LOCKKEEPER_CORE_EXPORT Token {
 public:
  static constexpr std::size_t size = 16;

  /// A new one. Throws what `random` throws.
  static Token generate(Random& random);

  /// The one with these bits(): for drivers that read it back from their store.
  static Token fromBytes(std::span<const std::byte, size> bytes) noexcept;

  /// 32 lower-case hexadecimal digits: the form in which stores keep it.
  std::string hex() const;

  /// The bits themselves.
  std::span<const std::byte, size> bytes() const noexcept { return bytes_; }

  friend bool operator==(const Token&, const Token&) = default;
  /// Some order, for containers.
  friend auto operator<=>(const Token&, const Token&) = default;

 private:
  std::array<std::byte, size> bytes_{};
};

}  // namespace lockkeeper
