#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "lease/leases.h"
#include "lockkeeper/driver/driver.h"

namespace lockkeeper::etcd {

/// Shows who holds which lock. Thread-safe.
class Listing {
 public:
  using Visit = std::function<bool(std::string_view key, const Holder& holder)>;

  Listing(EtcdStore& store, Leases& leases) : store_(store), leases_(leases) {}

  /// As LockDriver::holder().
  std::optional<Holder> holder(std::string_view key, Instant deadline);

  /// As Permits::shareHolders().
  std::vector<Holder> shareHolders(std::string_view key, Instant deadline);

  /// As Browsable::list(), or listBusy() without `oursOnly`.
  void list(std::string_view prefix, bool oursOnly, const Visit& visit, Instant deadline);

 private:
  struct Shown {
    std::string key;
    Entry claim;
  };

  bool show(std::vector<Shown>& locks, bool oursOnly, const Visit& visit, Instant deadline);

  EtcdStore& store_;
  Leases& leases_;
};

}  // namespace lockkeeper::etcd
