#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lockkeeper/driver/driver.h"

namespace lockkeeper::redis {

/// What a lock's key holds: the token, and after an '@' the owner's label if there is one. Secret, for the
/// token.
std::string lockValue(const Claim& claim);

/// The label in a value that lockValue() made; empty for any other value.
std::optional<std::string> ownerIn(std::string_view value);

}  // namespace lockkeeper::redis
