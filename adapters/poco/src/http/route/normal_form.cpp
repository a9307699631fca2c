#include "http/route/normal_form.h"

#include <Poco/Ascii.h>
#include <Poco/String.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string_view>

#include "lockkeeper/error.h"

namespace lockkeeper::poco {

namespace {

constexpr std::size_t fewestDigits = 2;
constexpr std::size_t mostDigits = 15;

/// + and digits. Spaces, hyphens, dots, slashes and parentheses may stand between the digits, and 00 in place
/// of +.
std::optional<std::string> e164(std::string_view written) {
  std::string digits;
  bool plus = false;
  for (const char c : written) {
    if (Poco::Ascii::isDigit(c)) {
      digits += c;
    } else if (c == '+' && digits.empty() && !plus) {
      plus = true;
    } else if (std::string_view(" -./()").find(c) == std::string_view::npos) {
      return std::nullopt;
    }
  }
  if (!plus && digits.starts_with("00")) {
    digits.erase(0, 2);
    plus = true;
  }
  if (!plus || digits.size() < fewestDigits || digits.size() > mostDigits || digits.front() == '0') {
    return std::nullopt;
  }
  return "+" + digits;
}

}  // namespace

NormalForm NormalForm::parse(const std::string& what, const std::string& text) {
  static const std::map<std::string, Step>& known =
      *new std::map<std::string, Step>{{"trim", Step::trim}, {"lower", Step::lower}, {"e164", Step::e164}};
  NormalForm form;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('|', begin), text.size());
    const std::string word = Poco::trim(text.substr(begin, end - begin));
    begin = end + 1;
    const auto step = known.find(word);
    const bool atEnd = begin > text.size();
    if (step != known.end()) {
      form.steps_.push_back(step->second);
    } else if (atEnd && (word == "plain" || word == "hash")) {
      form.hashed_ = word == "hash";
    } else {
      throw std::invalid_argument(what + " has " + quoted(word) +
                                  " after |: trim, lower and e164 are allowed, and plain or hash at the end");
    }
  }
  return form;
}

std::optional<std::string> NormalForm::of(std::string value) const {
  for (const Step step : steps_) {
    if (step == Step::trim) Poco::trimInPlace(value);
    if (step == Step::lower)
      std::ranges::transform(value, value.begin(), [](char c) {
        return static_cast<char>(Poco::Ascii::toLower(static_cast<unsigned char>(c)));
      });
    if (step == Step::e164) {
      auto number = e164(value);
      if (!number) return std::nullopt;
      value = std::move(*number);
    }
  }
  return value;
}

}  // namespace lockkeeper::poco
