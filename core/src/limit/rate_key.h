#pragma once

#include <array>
#include <cstring>
#include <string_view>

#include "lockkeeper/base/key.h"

namespace lockkeeper::detail {

/// "namespace:policy:key", on the stack. The parts are checked before: the first two have no ':', so that
/// different parts make different keys.
class RateKey {
 public:
  RateKey(std::string_view space, std::string_view policy, std::string_view key) noexcept {
    append(space);
    append(":");
    append(policy);
    append(":");
    append(key);
  }

  std::string_view view() const noexcept { return {bytes_.data(), size_}; }

 private:
  void append(std::string_view part) noexcept {
    std::memcpy(bytes_.data() + size_, part.data(), part.size());
    size_ += part.size();
  }

  std::array<char, 64 + 1 + 64 + 1 + maxKeyBytes> bytes_;
  std::size_t size_ = 0;
};

}  // namespace lockkeeper::detail
