#pragma once

#include <stdexcept>
#include <string>

#include "lockkeeper/error.h"

namespace lockkeeper {

/// What `fn` returns. What it refuses becomes a ConfigError that begins with `prefix`: its options are from a
/// URI or a configuration, not from the program.
template <class Fn>
auto asConfigured(const std::string& prefix, Fn&& fn) {
  try {
    return fn();
  } catch (const ConfigError& error) {
    throw ConfigError(prefix + error.what());
  } catch (const std::invalid_argument& error) {
    throw ConfigError(prefix + error.what());
  }
}

}  // namespace lockkeeper
