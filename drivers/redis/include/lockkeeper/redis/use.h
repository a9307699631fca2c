#pragma once

namespace lockkeeper {
class StoreRegistry;
}

namespace lockkeeper::redis {

/// Adds the schemes `redis`, `rediss` (TLS) and `redis+unix` to `registry`.
void use(StoreRegistry& registry);

}  // namespace lockkeeper::redis
