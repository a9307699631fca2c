#include "lockkeeper/postgres/use.h"

#include <memory>

#include "lockkeeper/postgres/value_store.h"
#include "lockkeeper/postgres/version_driver.h"
#include "lockkeeper/store_registry.h"

namespace lockkeeper::postgres {

void use(StoreRegistry& registry) {
  registry.add("postgres+version", [](const StoreUri& uri, const Environment& environment) {
    return std::make_shared<VersionDriver>(uri, environment);
  });
  registry.addValues("postgres+version", [](const StoreUri& uri, const Environment& environment) {
    return std::make_shared<PostgresValues>(uri, environment);
  });
}

}  // namespace lockkeeper::postgres
