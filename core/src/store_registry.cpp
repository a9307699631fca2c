#include "lockkeeper/store_registry.h"

#include <stdexcept>

#include "lockkeeper/error.h"
#include "lockkeeper/key.h"
#include "lockkeeper/memory_driver.h"

namespace lockkeeper {

StoreRegistry::StoreRegistry() { memory::use(*this); }

void StoreRegistry::add(std::string scheme, Factory factory) {
  if (factories_.contains(scheme)) {
    throw std::invalid_argument("the scheme " + quoted(scheme) + " is registered already");
  }
  factories_[std::move(scheme)] = std::move(factory);
}

std::shared_ptr<LockDriver> StoreRegistry::open(std::string_view uri, const Environment& environment) const {
  const StoreUri parsed = StoreUri::parse(uri);
  const auto found = factories_.find(parsed.scheme());
  if (found != factories_.end()) return found->second(parsed, environment);

  std::string known;
  for (const auto& entry : factories_) known += (known.empty() ? "" : ", ") + entry.first;
  throw ConfigError("no driver is registered for the scheme " + quoted(parsed.scheme()) +
                    ": this program knows " + known);
}

}  // namespace lockkeeper
