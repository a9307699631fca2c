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

/// Without the '@' at its end, by which scripts/queue/queue.lua marks the value of a claim that the key is
/// offered to.
constexpr std::string_view withoutOffer(std::string_view value) {
  return value.ends_with('@') ? value.substr(0, value.size() - 1) : value;
}

/// What a value says that lockValue() made, or that is offered the key; empty for any other value.
inline std::optional<ClaimText> textIn(std::string_view value) { return claimTextIn(withoutOffer(value)); }

}  // namespace lockkeeper::redis
