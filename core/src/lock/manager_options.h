#pragma once

#include "lockkeeper/lock_manager.h"

namespace lockkeeper::detail {

/// `options` with its defaults filled in. Throws ConfigError that names the first value out of range,
/// std::invalid_argument when it is one of `lock`.
ManagerOptions completed(ManagerOptions options);

}  // namespace lockkeeper::detail
