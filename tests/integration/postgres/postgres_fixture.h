#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "claimant.h"
#include "fault_proxy.h"
#include "lockkeeper/environment.h"
#include "postgres_server.h"

namespace lockkeeper::test {

/// The server of this test program, started when first asked for.
PostgresServer& postgresServer();

/// A driver for this URI; `query` is what the URI has after a question mark.
std::shared_ptr<LockDriver> openPostgres(const std::string& uri, const std::string& query = "",
                                         const Environment& environment = {});

/// That server, a proxy in front of it, and a client of it.
struct PostgresStore {
  std::shared_ptr<LockDriver> open(const std::string& query = "") const {
    return openPostgres(server.uri(scheme), query);
  }
  std::shared_ptr<LockDriver> openProxied(const std::string& query = "") const {
    return openPostgres(PostgresServer::uri(scheme, proxy.port()), query);
  }
  bool isFree(const std::string& key) const { return !direct->holder(key, soon()); }

  static constexpr const char* scheme = "postgres+version";
  PostgresServer& server = postgresServer();
  FaultProxy proxy{server.port()};
  const std::shared_ptr<LockDriver> direct = openPostgres(server.uri(scheme));
};

class PostgresTest : public ::testing::Test {
 protected:
  PostgresStore store;
};

}  // namespace lockkeeper::test
