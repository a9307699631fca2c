#pragma once

#include <optional>
#include <string_view>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/internal/claim_text.h"
#include "wire/protocol/composed_text.h"

namespace lockkeeper::redis {

/// What a lock's key holds: the token, and after an '@' the owner's label if there is one. That of a share
/// always has both, and after one more '@' "<weight>/<limit>". Secret, for the token.
ComposedText lockValue(const Claim& claim);

/// What a value says that lockValue() made; empty for any other value.
inline std::optional<ClaimText> textIn(std::string_view value) { return claimTextIn(value); }

}  // namespace lockkeeper::redis
