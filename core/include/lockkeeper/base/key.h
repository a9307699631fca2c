#pragma once

#include <cstddef>
#include <string_view>

#include "lockkeeper/export.h"

namespace lockkeeper {

/// Keys are bytes: every sequence of 1 to 512 bytes names a lock of its own, on every driver.
inline constexpr std::size_t maxKeyBytes = 512;

/// Marks the names that lockkeeper keeps for itself beside a lock (its fence counter, for one). Keys that
/// contain it are refused on every driver, so that no lock can be mistaken for another one's companion.
inline constexpr std::string_view reservedMark = ":lockkeeper:";

/// Throws std::invalid_argument, naming the fault, unless `key` is one that every driver accepts.
LOCKKEEPER_CORE_EXPORT void checkKey(std::string_view key);

/// Throws std::invalid_argument that names `what` and the name, unless that has 1 to 64 characters of
/// [A-Za-z0-9_] and `also`.
LOCKKEEPER_CORE_EXPORT void checkName(std::string_view what, std::string_view name,
                                      std::string_view also = ".-");

/// checkName() for a namespace, which may also be empty.
LOCKKEEPER_CORE_EXPORT void checkNamespace(std::string_view name);

}  // namespace lockkeeper
