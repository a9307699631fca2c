#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockkeeper/driver/driver.h"

namespace lockkeeper::redis {

/// What a key of the legacy scheme holds, as far as its bytes tell.
struct LegacyValue {
  enum class Kind {
    free,    ///< There is no key.
    digits,  ///< Unix seconds and nothing else, but perhaps a fraction, or what a serializer adds: a legacy
             ///< client's.
    withToken,  ///< Unix seconds, ':', a token: ours, or of a client that was taught to write it.
    foreign,    ///< Anything else. Nobody's lock, and never to be taken over.
  };
  Kind kind = Kind::free;
  std::chrono::seconds ends{};  ///< The unix seconds. Legacy clients hold it for expired in the second after.
  std::string owner{};          ///< The label behind the token's '@'.
  std::string
      what{};  ///< Of a value that is not as the scheme has it: what it looks like, without its content.
};

/// `type` is Redis's name of the key's type, or "none".
LegacyValue parseLegacyValue(std::string_view type, std::string_view value);

/// What stays the same in a value as long as its grant is renewed: all but the seconds before a token.
std::string_view legacyGrant(std::string_view value);

/// What stands in our values after the seconds. Secret, for the token.
std::string legacySuffix(const Claim& claim);

}  // namespace lockkeeper::redis
