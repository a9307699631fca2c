#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace lockkeeper::redis {

/// A text that is put together from pieces. As long as it is short, that takes no allocation.
class ComposedText {
 public:
  ComposedText() = default;
  ComposedText(const ComposedText&) = default;
  ComposedText& operator=(const ComposedText&) = default;
  ComposedText(std::initializer_list<std::string_view> pieces) {
    for (const std::string_view piece : pieces) size_ += piece.size();
    if (size_ > near_.size()) far_.resize(size_);
    char* end = far_.empty() ? near_.data() : far_.data();
    for (const std::string_view piece : pieces) end = std::copy(piece.begin(), piece.end(), end);
  }

  std::string_view view() const noexcept { return {far_.empty() ? near_.data() : far_.data(), size_}; }
  operator std::string_view() const noexcept { return view(); }
  std::string string() const { return std::string(view()); }

  friend bool operator==(const ComposedText& left, std::string_view right) { return left.view() == right; }

 private:
  std::array<char, 128> near_{};
  std::string far_{};  // when it is longer than that
  std::size_t size_ = 0;
};

}  // namespace lockkeeper::redis
