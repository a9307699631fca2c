#include "lockkeeper/postgres/row_statement.h"

#include <stdexcept>
#include <string_view>

#include "session/fault.h"

namespace lockkeeper::postgres {

std::string numbered(const std::string& statement, std::size_t values) {
  std::string text;
  std::size_t used = 0;
  char quote = 0;
  for (const char c : statement) {
    if (quote == 0 && c == '?') {
      text += '$' + std::to_string(++used);
      continue;
    }
    const bool isEnd = c == quote;
    const bool isBegin = quote == 0 && (c == '\'' || c == '"' || c == '`');
    text += c == '`' && (isBegin || isEnd) ? '"' : c;
    if (isBegin) quote = c;
    if (isEnd) quote = 0;
  }
  if (used == values) return text;
  throw std::invalid_argument(std::to_string(values) + " values are given for: " + statement);
}

// Texts that came from outside may stand before and behind the state. All that they can do is cause another
// attempt.
bool tellsContention(const std::string& message) {
  constexpr std::string_view mark = " State: ";
  constexpr std::size_t length = 5;
  const auto at = message.rfind(mark);
  return at != std::string::npos && isContention(std::string_view(message).substr(at + mark.size(), length));
}

}  // namespace lockkeeper::postgres
