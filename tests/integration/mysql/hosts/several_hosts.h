#pragma once

#include <gmock/gmock.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "claimant.h"
#include "database_server.h"
#include "lockkeeper/error.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/store_registry.h"
#include "succeeds_in_the_end.h"
#include "wait_until.h"

namespace lockkeeper::test {

inline std::string address(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

inline std::shared_ptr<LockDriver> open(const std::string& uri) {
  StoreRegistry registry;
  mysql::use(registry);
  return registry.open(uri);
}

/// Two servers, started once, that know nothing of each other: the first one takes the writes.
class SeveralHosts : public ::testing::Test {
 protected:
  static DatabaseServer& server(int index) {
    static std::array<DatabaseServer, 2> servers{DatabaseServer(Brand::mariadb),
                                                 DatabaseServer(Brand::mariadb)};
    return servers.at(static_cast<std::size_t>(index));
  }
  void SetUp() override {
    ASSERT_EQ(database, same);
    first.letClerkIn(database);
    second.letClerkIn(database);
    setWritable(true, false);
  }
  void TearDown() override { setWritable(true, true); }
  void setWritable(bool firstIs, bool secondIs) const {
    first.execute(std::string("SET GLOBAL read_only = ") + (firstIs ? "0" : "1"));
    second.execute(std::string("SET GLOBAL read_only = ") + (secondIs ? "0" : "1"));
  }
  std::string both() const { return address(first.port()) + "," + address(second.port()); }
  std::string uri(const std::string& scheme, const std::string& hosts, const std::string& query = "") const {
    return scheme + "://clerk:clerk@" + hosts + "/" + database + "?createTable=true" + query;
  }

  DatabaseServer& first = server(0);
  DatabaseServer& second = server(1);
  const std::string database = first.newDatabase();
  const std::string same = second.newDatabase();
};

}  // namespace lockkeeper::test
