#include "http/framing.h"

#include <Poco/Ascii.h>
#include <Poco/String.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace lockkeeper::poco {

namespace {

constexpr std::size_t mostLengthDigits = 18;  // what fits into 64 bits

bool isTokenCharacter(char c) {
  return Poco::Ascii::isAlphaNumeric(static_cast<unsigned char>(c)) ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

// "Content-Length : 5" is a length to some, and an unknown field to others.
bool isToken(const std::string& name) { return std::ranges::all_of(name, isTokenCharacter); }

bool isLength(const std::string& value) {
  return !value.empty() && value.size() <= mostLengthDigits && std::ranges::all_of(value, [](char c) {
    return Poco::Ascii::isDigit(static_cast<unsigned char>(c));
  });
}

}  // namespace

bool hasClearFraming(const Poco::Net::HTTPServerRequest& request) {
  int lengths = 0;
  int encodings = 0;
  for (const auto& [name, value] : request) {
    if (!isToken(name)) return false;
    if (Poco::icompare(name, "Content-Length") == 0) {
      ++lengths;
      if (!isLength(value)) return false;
    } else if (Poco::icompare(name, "Transfer-Encoding") == 0) {
      ++encodings;
      // Before HTTP/1.1 there were no chunks.
      if (Poco::icompare(value, "chunked") != 0 || request.getVersion() != request.HTTP_1_1) return false;
    }
  }
  return lengths + encodings <= 1;
}

}  // namespace lockkeeper::poco
