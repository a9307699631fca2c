#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "lockkeeper/base/key.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/as_configured.h"

namespace lockkeeper {

/// The name, which has 1 to `longest` characters of [A-Za-z0-9_], and 64 at most. Throws ConfigError that
/// names `what` otherwise.
inline std::string checkedName(const std::string& what, std::string name, std::size_t longest) {
  asConfigured("", [&] { checkName(what, name, ""); });
  if (name.size() <= longest) return name;
  throw ConfigError(what + " is " + quoted(name) + ": at most " + std::to_string(longest) +
                    " characters are allowed");
}

}  // namespace lockkeeper
