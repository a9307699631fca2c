#pragma once

#include <memory>
#include <string>

#include "claimant.h"
#include "database_server.h"
#include "fault_proxy.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/error.h"
#include "wait_until.h"

#include <gtest/gtest.h>

namespace lockkeeper::test {

/// The server of this test program, started when first asked for.
DatabaseServer& serverOf(Brand brand);

/// A driver for 127.0.0.1:port; `query` is what the URI has after createTable=true&.
std::shared_ptr<LockDriver> openGetLock(const std::string& database, std::uint16_t port,
                                        const std::string& query = "", const Environment& environment = {});

/// A new database on a real server, a proxy in front of it, and a client of each.
class GetLockStore {
 public:
  explicit GetLockStore(Brand brand) : server(serverOf(brand)) {}

  std::shared_ptr<LockDriver> open(const std::string& query = "") const {
    return openGetLock(database, server.port(), query);
  }
  std::shared_ptr<LockDriver> openProxied(const std::string& query = "") const {
    return openGetLock(database, proxy.port(), query);
  }
  bool isFree(const std::string& key) const { return ask("SELECT IS_FREE_LOCK('" + key + "')") == "1"; }

  /// The first column of the first row, as the tests' own user sees it.
  std::string ask(const std::string& query) const;

  DatabaseServer& server;
  const std::string database = server.newDatabase();
  FaultProxy proxy{server.port()};
  const std::shared_ptr<LockDriver> direct = openGetLock(database, server.port());
};

/// For tests that are run on each server.
class GetLockTest : public ::testing::TestWithParam<Brand> {
 protected:
  GetLockStore store{GetParam()};
};

inline std::string brandName(const ::testing::TestParamInfo<Brand>& info) { return nameOf(info.param); }

inline AcquireRequest requestFor(const Claimant& who, std::chrono::milliseconds ttl) {
  AcquireRequest request = who.request();
  request.ttl = ttl;
  return request;
}

inline RenewOutcome renew(LockDriver& driver, const Claimant& who, std::chrono::milliseconds ttl = longTtl,
                          Instant deadline = soon()) {
  Renewal renewal{.claim = who.claim(), .ttl = ttl};
  driver.renew({&renewal, 1}, deadline);
  return renewal.outcome;
}

}  // namespace lockkeeper::test
