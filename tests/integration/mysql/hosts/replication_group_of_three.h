#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <utility>

#include "claimant.h"
#include "lockkeeper/error.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/store_registry.h"
#include "replication_group.h"
#include "succeeds_in_the_end.h"
#include "wait_until.h"

namespace lockkeeper::test {

using namespace std::chrono_literals;

// The group takes six seconds to find its new primary.
inline constexpr std::chrono::seconds failoverBound{60};

/// Group Replication: three real servers with one primary, started once for all tests.
class ReplicationGroupOfThree : public ::testing::Test {
 protected:
  static ReplicationGroup& theGroup() {
    static ReplicationGroup started;
    return started;
  }
  std::shared_ptr<LockDriver> open(const std::string& scheme, const std::string& query = "") const {
    StoreRegistry registry;
    mysql::use(registry);
    return registry.open(group.uri(scheme, database) + "?createTable=true" + query);
  }
  /// On a busy machine the primary may be slower than a search waits for it.
  std::shared_ptr<LockDriver> openConnected(const std::string& scheme, const std::string& query = "") const {
    const auto driver = open(scheme, query);
    succeedsInTheEnd([&] { (void)driver->holder("connects", soon()); });
    return driver;
  }
  static RenewOutcome renew(LockDriver& driver, const Claimant& who, std::chrono::milliseconds bound = 10s) {
    Renewal renewal{.claim = who.claim(), .ttl = longTtl};
    driver.renew({&renewal, 1}, in(bound));
    return renewal.outcome;
  }
  /// A group may be away for as long as a failover takes.
  template <class Call>
  static void succeedsInTheEnd(Call&& call) {
    test::succeedsInTheEnd(std::forward<Call>(call), failoverBound);
  }
  static std::size_t after(std::size_t index) { return (index + 1) % ReplicationGroup::size; }

  ReplicationGroup& group = theGroup();
  const std::string database = group.newDatabase();
};

}  // namespace lockkeeper::test
