#pragma once

#include <memory>
#include <string>

#include "claimant.h"
#include "etcd_cluster.h"
#include "lockkeeper/error.h"
#include "lockkeeper/etcd/use.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/store_registry.h"
#include "wait_until.h"

#include <gtest/gtest.h>

namespace lockkeeper::test {

/// With timeouts that a busy machine does not reach, unless the URI or `query` has parameters of its own.
inline constexpr const char* patient = "?connectTimeout=5s&ioTimeout=5s";

inline std::shared_ptr<LockDriver> openEtcd(const std::string& uri, const std::string& query = patient) {
  StoreRegistry registry;
  etcd::use(registry);
  return registry.open(uri.find('?') == std::string::npos ? uri + query : uri);
}

inline std::string etcdUri(std::uint16_t port) { return "etcd://127.0.0.1:" + std::to_string(port); }

}  // namespace lockkeeper::test
