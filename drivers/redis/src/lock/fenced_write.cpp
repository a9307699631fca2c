#include "lockkeeper/redis/fenced_write.h"

#include "scripts.h"
#include "store/companion_key.h"

namespace lockkeeper::redis {

std::vector<std::string> fencedClaim(std::string_view resource, Fence fence) {
  return {"EVAL",
          std::string(scripts::fenced_write),
          "2",
          std::string(resource),
          companionKey(resource, "seen").string(),
          std::to_string(fence)};
}

std::vector<std::string> fencedWrite(std::string_view resource, Fence fence, std::string_view value) {
  std::vector<std::string> words = fencedClaim(resource, fence);
  words.emplace_back(value);
  return words;
}

}  // namespace lockkeeper::redis
