#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "lockkeeper/driver.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/store_uri.h"

namespace lockkeeper {

/// Opens stores by URI. An application registers the drivers that it links, one line each
/// (`redis::use(registry)`); `memory:` is there from the start. Not thread-safe: fill it before threads share
/// it; open() is const.
class StoreRegistry {
 public:
  using Factory =
      std::function<std::shared_ptr<LockDriver>(const StoreUri& uri, const Environment& environment)>;

  StoreRegistry();

  /// Throws std::invalid_argument when the scheme is taken.
  void add(std::string scheme, Factory factory);

  /// Makes the driver that the URI's scheme names. Connects nowhere yet: the first operation does. Throws
  /// ConfigError for a malformed URI, an unknown parameter, or a scheme that nobody registered (naming those
  /// that are).
  std::shared_ptr<LockDriver> open(std::string_view uri, const Environment& environment = {}) const;

 private:
  std::map<std::string, Factory, std::less<>> factories_;
};

}  // namespace lockkeeper
