#include <cstdlib>
#include <string_view>

#include "lockkeeper/mysql/row_database.h"
#include "session/reply_fault.h"

namespace lockkeeper::mysql {

// Poco keeps the server's number in the text only. The last one counts: what stands before it may quote a
// value that came from outside.
bool tellsContention(const std::string& message) {
  constexpr std::string_view mark = "errno]: ";
  const auto at = message.rfind(mark);
  if (at == std::string::npos) return false;
  const long number = std::strtol(message.c_str() + at + mark.size(), nullptr, 10);
  return number > 0 && kindOf(static_cast<unsigned>(number)) == FaultKind::contention;
}

}  // namespace lockkeeper::mysql
