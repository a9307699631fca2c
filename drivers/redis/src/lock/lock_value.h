#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lockkeeper/driver/driver.h"
#include "wire/protocol/composed_text.h"

namespace lockkeeper::redis {

/// What a lock's key holds: the token, and after an '@' the owner's label if there is one. Secret, for the
/// token.
ComposedText lockValue(const Claim& claim);

/// Without the '@' at its end, by which scripts/queue.lua marks the value of a claim that the key is only
/// offered to.
constexpr std::string_view withoutOffer(std::string_view value) {
  return value.ends_with('@') ? value.substr(0, value.size() - 1) : value;
}

/// The label in a value that lockValue() made, or that is offered the key; empty for any other value.
std::optional<std::string> ownerIn(std::string_view value);

}  // namespace lockkeeper::redis
