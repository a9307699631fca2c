#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lockkeeper/owner/owner_token.h"

namespace lockkeeper::poco {

/// An OwnerToken as the bytes in a pipe: less than 1 KiB.
std::string recordOf(const OwnerToken& token);

/// Back again; empty for anything else.
std::optional<OwnerToken> tokenIn(std::string_view record);

}  // namespace lockkeeper::poco
