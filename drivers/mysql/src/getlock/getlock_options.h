#pragma once

#include <cstddef>

#include "session/server_options.h"

namespace lockkeeper::mysql {

/// What a mysql+getlock:// URI says; GetLockDriver documents its parameters.
struct GetLockOptions : ServerOptions {
  bool fence = true;
  std::size_t connections = 16;

  /// Throws ConfigError that names the wrong part and what is allowed.
  static GetLockOptions fromUri(const StoreUri& uri);
};

}  // namespace lockkeeper::mysql
