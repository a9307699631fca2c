#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lockkeeper/driver/server_login.h"

namespace lockkeeper::libpq {

/// Names and values of the parameters for a connection to an address, a numeric one, of the host; empty for a
/// unix socket. They are all that the client library knows. Throws ConfigError for an environment variable
/// that it would obey.
std::vector<std::pair<const char*, std::string>> parametersOf(const ServerLogin& login,
                                                              const ServerAddress& host,
                                                              const std::string& address);

}  // namespace lockkeeper::libpq
