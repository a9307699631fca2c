#include "lockkeeper/postgres/row_statement.h"

#include <string_view>

#include "lockkeeper/libpq/rows.h"
#include "session/fault.h"

namespace lockkeeper::postgres {

std::string numbered(const std::string& statement, std::size_t values) {
  return libpq::withParameters(statement, values,
                               [](std::size_t index) { return "$" + std::to_string(index + 1); });
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
