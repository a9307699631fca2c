#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lockkeeper/base/hex.h"
#include "lockkeeper/base/token.h"
#include "session/statement.h"

namespace lockkeeper::postgres {

inline std::string_view bytesOf(const Token& token) {
  return {reinterpret_cast<const char*>(token.bytes().data()), Token::size};
}

/// The elements of a BYTEA[] or of a BIGINT[] or TEXT[], as the text of one value.
class Array {
 public:
  void add(std::int64_t number) { next() += std::to_string(number); }
  void addBytes(std::string_view bytes) {
    std::string& text = next() += "\"\\\\x";
    for (const char each : bytes) appendHex(text, static_cast<unsigned char>(each));
    text += '"';
  }
  void addText(std::string_view words) {
    std::string& text = next() += '"';
    for (const char each : words) {
      if (each == '"' || each == '\\') text += '\\';
      text += each;
    }
    text += '"';
  }
  Value value() const { return Value(text_ + "}"); }

 private:
  std::string& next() {
    if (text_.size() > 1) text_ += ',';
    return text_;
  }
  std::string text_ = "{";
};

/// What `element` says of each.
template <class Range, class Element>
Value arrayOf(const Range& range, Element element) {
  Array array;
  for (const auto& each : range) element(array, each);
  return array.value();
}

}  // namespace lockkeeper::postgres
