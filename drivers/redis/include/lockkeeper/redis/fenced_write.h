#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/redis/export.h"

namespace lockkeeper::redis {

/// The guard for a resource that is itself a key in Redis: it refuses a former holder of the lock that has
/// not noticed its loss. The highest fence that the resource has seen is kept for ever in a companion key in
/// the same hash slot. Both functions return the words of one command, to be sent with the application's own
/// client. The reply is the integer 1, or 0 when the fence was refused because a later holder has come.
/// Local, no I/O.
///
/// The script is also installed as share/lockkeeper/redis/fenced_write.lua.

/// Sets the string at `resource` to `value`.
[[nodiscard]] LOCKKEEPER_REDIS_EXPORT std::vector<std::string> fencedWrite(std::string_view resource,
                                                                           Fence fence,
                                                                           std::string_view value);

/// Claims the fence and writes nothing else. A new holder sends this before it reads the resource: from then
/// on, no earlier holder can change what it has read.
[[nodiscard]] LOCKKEEPER_REDIS_EXPORT std::vector<std::string> fencedClaim(std::string_view resource,
                                                                           Fence fence);

}  // namespace lockkeeper::redis
