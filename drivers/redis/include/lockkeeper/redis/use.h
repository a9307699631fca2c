#pragma once

namespace lockkeeper {
class StoreRegistry;
}

namespace lockkeeper::redis {

/// Adds the schemes `redis`, `rediss` (TLS), `redis+unix`, `redis+legacy` and `redlock` to `registry`.
void use(StoreRegistry& registry);

}  // namespace lockkeeper::redis
