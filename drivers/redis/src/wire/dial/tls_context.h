#pragma once

#include <Poco/Net/Context.h>

namespace lockkeeper::redis {

struct RedisOptions;

/// The TLS settings of `options`; null when it asks for none. Throws ConfigError naming the CA file that
/// cannot be used.
Poco::Net::Context::Ptr makeTlsContext(const RedisOptions& options);

}  // namespace lockkeeper::redis
