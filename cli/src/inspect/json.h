#pragma once

#include <Poco/JSON/Object.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"

namespace lockkeeper::cli {

/// What --json prints. Names in this order; lengths of time in milliseconds.
Poco::JSON::Object newObject();

/// Sets `name`; for a text that is not UTF-8, which JSON cannot hold, its escaped form, and its bytes in
/// hexadecimal as `name`Hex.
void setText(Poco::JSON::Object& object, const std::string& name, std::string_view text);

/// Sets `owner`: null for one that has no label.
void setOwner(Poco::JSON::Object& object, const std::string& owner);

/// Sets `name` to milliseconds, or null.
void setLength(Poco::JSON::Object& object, const char* name, std::optional<std::chrono::milliseconds> length);

/// key, and of its holder, when there is one: owner (null for an unknown client), remainingMs (null:
/// it never ends, or its end is not known) and fence (null: none); of one who has a share of it, also permits
/// and limit.
Poco::JSON::Object jsonOf(std::string_view key, const Holder& holder);

/// Of one who waits: owner (null: it has no label), waitedMs (null: not known), permits and limit of a share.
Poco::JSON::Object jsonOf(const Waiter& waiter);

/// On a line of its own, and at once: somebody may read it from a pipe.
void printLine(const Poco::JSON::Object& object);

}  // namespace lockkeeper::cli
