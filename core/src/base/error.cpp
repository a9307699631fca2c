#include "lockkeeper/error.h"

#include "lockkeeper/base/hex.h"

namespace lockkeeper {

const char* toString(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::storeUnavailable:
      return "store unavailable";
    case ErrorCode::outcomeUnknown:
      return "outcome unknown";
    case ErrorCode::lockTimeout:
      return "lock timeout";
    case ErrorCode::lockLost:
      return "lock lost";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::deadlock:
      return "deadlock";
    case ErrorCode::config:
      return "configuration";
    case ErrorCode::protocol:
      return "protocol";
    case ErrorCode::forked:
      return "forked";
  }
  return "unknown";
}

std::string printable(std::string_view text, std::size_t most) {
  std::string shown;
  for (const char c : text.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) {
      shown += "\\x";
      appendHex(shown, byte);
    } else {
      if (c == '\\') shown += c;
      shown += c;
    }
  }
  return text.size() > most ? shown + "..." : shown;
}

std::string quoted(std::string_view text) {
  constexpr std::size_t most = 64;
  return "'" + printable(text, most) + "'";
}

}  // namespace lockkeeper
