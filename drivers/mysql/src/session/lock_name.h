#pragma once

#include <string>
#include <string_view>

namespace lockkeeper::mysql {

/// The name under which a key is locked on the server: 1 to 64 of [a-z0-9_.:/{}-], so that neither server
/// folds, trims, cuts or refuses it, and that it can stand in a statement as it is. A key of that form is its
/// own name, so that foreign users of GET_LOCK can share it; every other key becomes
/// `readable:lockkeeper:hash`, with the first 128 bits of its SHA-256.
std::string lockName(std::string_view key);

/// A name that no key is locked under: what can be read of it, and a hash.
std::string hashedName(std::string_view readable, std::string_view hashed);

}  // namespace lockkeeper::mysql
