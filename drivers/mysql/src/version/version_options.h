#pragma once

#include <cstddef>
#include <string>

#include "session/server_options.h"

namespace lockkeeper::mysql {

/// What a mysql+version:// URI says; VersionDriver documents its parameters.
struct VersionOptions : ServerOptions {
  std::string table = "lockkeeper_locks";
  std::size_t connections = 8;

  /// Throws ConfigError that names the wrong part and what is allowed.
  static VersionOptions fromUri(const StoreUri& uri);
};

}  // namespace lockkeeper::mysql
