#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/export.h"
#include "lockkeeper/store/fence_source.h"
#include "lockkeeper/store/value_store.h"
#include "lockkeeper/store_uri.h"

namespace lockkeeper {

/// Opens stores by URI. An application registers the drivers that it links, each in one line
/// (`redis::use(registry)`); `memory:` needs no registration. Register all drivers before threads share the
/// registry: only the const functions are thread-safe.
class LOCKKEEPER_CORE_EXPORT StoreRegistry {
 public:
  /// Makes the driver for a URI. Throws ConfigError for a wrong URI.
  using Factory =
      std::function<std::shared_ptr<LockDriver>(const StoreUri& uri, const Environment& environment)>;

  /// For stores that are made of others: `registry` opens their parts.
  using Composition = std::function<std::shared_ptr<LockDriver>(
      const StoreUri& uri, const Environment& environment, const StoreRegistry& registry)>;

  /// Makes the source of fences for a URI. Throws ConfigError for a wrong URI.
  using FenceFactory =
      std::function<std::shared_ptr<FenceSource>(const StoreUri& uri, const Environment& environment)>;

  /// Makes the store of values for a URI. Throws ConfigError for a wrong URI.
  using ValueFactory =
      std::function<std::shared_ptr<ValueStore>(const StoreUri& uri, const Environment& environment)>;

  StoreRegistry();

  /// Registers the driver of a scheme. Throws std::invalid_argument when the scheme is taken.
  void add(std::string scheme, Factory factory);
  /// As add().
  void addComposition(std::string scheme, Composition composition);

  /// Registers a store of durable fences, which other stores name in a parameter (`fenceStore=`). Its schemes
  /// are independent of those of lock stores. Throws std::invalid_argument when the scheme is taken.
  void addFences(std::string scheme, FenceFactory factory);

  /// Registers a store of values. Its schemes are independent of those of lock stores. Throws
  /// std::invalid_argument when the scheme is taken.
  void addValues(std::string scheme, ValueFactory factory);

  /// Whether open() has a driver for URIs of this scheme.
  bool knows(std::string_view scheme) const { return stores_.contains(scheme); }

  /// Makes the driver for the URI's scheme. It connects to nothing yet: the first operation does, or
  /// LockManager::ping(). Throws ConfigError for a malformed URI, an unknown parameter or an unregistered
  /// scheme.
  std::shared_ptr<LockDriver> open(std::string_view uri, const Environment& environment = {}) const;

  /// As open(), for the FenceSource that the URI names.
  std::shared_ptr<FenceSource> openFences(std::string_view uri, const Environment& environment = {}) const;

  /// As open(), for rate limits. Throws ConfigError also for a store that cannot keep limits.
  std::shared_ptr<RateDriver> openRates(std::string_view uri, const Environment& environment = {}) const;

  /// As open(), for the ValueStore that the URI names.
  std::shared_ptr<ValueStore> openValues(std::string_view uri, const Environment& environment = {}) const;

 private:
  std::map<std::string, Composition, std::less<>> stores_;
  std::map<std::string, FenceFactory, std::less<>> fences_;
  std::map<std::string, ValueFactory, std::less<>> values_;
};

}  // namespace lockkeeper
