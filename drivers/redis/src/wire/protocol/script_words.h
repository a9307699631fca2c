#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>
#include <vector>

namespace lockkeeper::redis {

/// The arguments of one script: texts of the caller's, and numbers that live here.
class ScriptWords {
 public:
  /// Room for so many words, all of which may be numbers.
  explicit ScriptWords(std::size_t count) {
    words_.reserve(count);
    digits_.resize(count * longestNumber);
  }

  void add(std::string_view text) { words_.push_back(text); }
  void add(std::int64_t number) {
    char* const begin = digits_.data() + words_.size() * longestNumber;
    const auto end = std::to_chars(begin, begin + longestNumber, number).ptr;
    words_.emplace_back(begin, end);
  }

  const std::vector<std::string_view>& words() const { return words_; }

 private:
  static constexpr std::size_t longestNumber = 20;

  std::vector<std::string_view> words_;
  std::vector<char> digits_;
};

}  // namespace lockkeeper::redis
