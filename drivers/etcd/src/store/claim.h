#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lockkeeper/driver/driver.h"

namespace lockkeeper::etcd {

/// A lock's key as a part of a path: readable, without a '/', and such that what begins with `key` begins
/// with its encoding.
std::string encoded(std::string_view key);

/// The key that encoded() made into `text`; empty for any other text.
std::optional<std::string> decoded(std::string_view text);

/// Names a claim where names are seen, in logs of the server for one: from it nobody finds the token.
std::string digestOf(const Token& token);

/// What a claim's key holds: the token, and after an '@' the owner's label if there is one. Secret, for the
/// token.
std::string valueOf(const Claim& claim);

/// The label in a value that valueOf() made; empty for any other value.
std::optional<std::string> ownerIn(std::string_view value);

}  // namespace lockkeeper::etcd
