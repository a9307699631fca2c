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

/// Opens stores by URI. An application registers the drivers that it links, one line each
/// (`redis::use(registry)`); `memory:` is there from the start. Not thread-safe: fill it before threads share
/// it; open() is const.
class LOCKKEEPER_CORE_EXPORT StoreRegistry {
 public:
  /// Makes the driver of a URI. Throws ConfigError for a wrong one.
  using Factory =
      std::function<std::shared_ptr<LockDriver>(const StoreUri& uri, const Environment& environment)>;

  /// For stores that are made of others: `registry` opens their parts.
  using Composition = std::function<std::shared_ptr<LockDriver>(
      const StoreUri& uri, const Environment& environment, const StoreRegistry& registry)>;

  /// Makes the source of fences of a URI. Throws ConfigError for a wrong one.
  using FenceFactory =
      std::function<std::shared_ptr<FenceSource>(const StoreUri& uri, const Environment& environment)>;

  /// Makes the store of values of a URI. Throws ConfigError for a wrong one.
  using ValueFactory =
      std::function<std::shared_ptr<ValueStore>(const StoreUri& uri, const Environment& environment)>;

  StoreRegistry();

  /// Registers the driver of a scheme. Throws std::invalid_argument when the scheme is taken.
  void add(std::string scheme, Factory factory);
  /// As add().
  void addComposition(std::string scheme, Composition composition);

  /// Registers a place for durable fences, which other stores name in a parameter (`fenceStore=`). Its
  /// schemes are apart from those of lock stores. Throws std::invalid_argument when the scheme is taken.
  void addFences(std::string scheme, FenceFactory factory);

  /// Registers a store of values. Its schemes are apart from those of lock stores. Throws
  /// std::invalid_argument when the scheme is taken.
  void addValues(std::string scheme, ValueFactory factory);

  /// Whether open() has a driver for URIs of this scheme.
  bool knows(std::string_view scheme) const { return stores_.contains(scheme); }

  /// Makes the driver that the URI's scheme names. Connects nowhere yet: the first operation does. Throws
  /// ConfigError for a malformed URI, an unknown parameter, or a scheme that nobody registered (naming those
  /// that are).
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
