#pragma once

#include <cstddef>
#include <string_view>

#include "lockkeeper/export.h"

namespace lockkeeper {

/// The longest key. Keys are bytes: every sequence of 1 to 512 bytes names a lock of its own, on every
/// driver.
inline constexpr std::size_t maxKeyBytes = 512;

/// Marks the names that lockkeeper uses for itself beside a lock, such as its fence counter. Every driver
/// refuses keys that contain it, so that no key can collide with such a name.
inline constexpr std::string_view reservedMark = ":lockkeeper:";

/// Throws std::invalid_argument that names the fault, unless every driver accepts `key`.
LOCKKEEPER_CORE_EXPORT void checkKey(std::string_view key);

/// Throws std::invalid_argument that contains `what` and the name, unless the name has 1 to 64 characters of
/// [A-Za-z0-9_] and `also`.
LOCKKEEPER_CORE_EXPORT void checkName(std::string_view what, std::string_view name,
                                      std::string_view also = ".-");

/// checkName() for a namespace, which may also be empty.
LOCKKEEPER_CORE_EXPORT void checkNamespace(std::string_view name);

}  // namespace lockkeeper
