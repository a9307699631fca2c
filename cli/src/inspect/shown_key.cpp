#include "inspect/shown_key.h"

#include <algorithm>

#include "lockkeeper/driver/key.h"

namespace lockkeeper::cli {

std::string shown(std::string_view key) {
  const bool plain =
      std::none_of(key.begin(), key.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; });
  return plain ? std::string(key) : quoted(key);
}

}  // namespace lockkeeper::cli
