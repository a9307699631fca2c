#include "lockkeeper/permit/share.h"

#include <stdexcept>
#include <string>

#include "lockkeeper/base/key.h"
#include "lockkeeper/error.h"

namespace lockkeeper {

void checkShare(const Share& share) {
  if (share.limit < 1 || share.limit > Share::most) {
    throw std::invalid_argument("a limit of " + std::to_string(share.limit) + " permits is not 1 to " +
                                std::to_string(Share::most));
  }
  if (share.weight < 1 || share.weight > share.limit) {
    throw std::invalid_argument("a share of " + std::to_string(share.weight) + " permits is not 1 to " +
                                std::to_string(share.limit) + ", the limit");
  }
}

void throwLimitsDisagree(std::string_view key, const Share& asked, std::uint32_t limit) {
  throw ConfigError("the key " + quoted(key) + " has a limit of " + std::to_string(limit) +
                    " permits for those who hold it, not " + std::to_string(asked.limit) +
                    ": all who share a key must name the same limit");
}

}  // namespace lockkeeper
