#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/internal/claim_text.h"

namespace lockkeeper::etcd {

/// A lock's key as a part of a path: readable, without a '/', and such that what begins with `key` begins
/// with its encoding.
std::string encoded(std::string_view key);

/// The key that encoded() made into `text`; empty for any other text.
std::optional<std::string> decoded(std::string_view text);

/// Names a claim where names are seen, in logs of the server for one: from it nobody finds the token.
std::string digestOf(const Token& token);

/// What the key of a claim holds: the token, and after an '@' the owner's label if there is one; of a share,
/// the label in any case, and after another '@' its permits, such as 2/5. Secret, for the token.
std::string valueOf(const Claim& claim);

/// The same for one that is not granted yet: of a share, with a '?' at the end.
std::string waitingValueOf(const Claim& claim);

/// What a claim's value says, but the token.
struct ValueText : ClaimText {
  bool waits = false;  ///< A share that is not granted yet.
};

/// Reads a value that one of both made; empty for any other value.
std::optional<ValueText> textIn(std::string_view value);

/// The value that the same claim has when it is granted.
std::string_view asGranted(std::string_view value);

/// The value of a share with another limit. Throws std::invalid_argument for any other value.
std::string withLimit(std::string_view value, std::uint32_t limit);

}  // namespace lockkeeper::etcd
