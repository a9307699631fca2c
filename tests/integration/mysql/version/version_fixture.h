#pragma once

#include <Poco/Data/Session.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "claimant.h"
#include "database_server.h"
#include "fault_proxy.h"
#include "lockkeeper/base/clock.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/error.h"
#include "wait_until.h"

namespace lockkeeper::test {

/// The server of this test program, started when first asked for.
DatabaseServer& serverOf(Brand brand);

/// A driver for 127.0.0.1:port; `query` is what the URI has after createTable=true&.
std::shared_ptr<LockDriver> openVersion(const std::string& database, std::uint16_t port,
                                        const std::string& query = "", const Environment& environment = {});

/// A new database on a real server, a proxy in front of it, and a client of each.
class VersionStore {
 public:
  explicit VersionStore(Brand brand) : server(serverOf(brand)) {}

  std::shared_ptr<LockDriver> open(const std::string& query = "", const Environment& environment = {}) const {
    return openVersion(database, server.port(), query, environment);
  }
  std::shared_ptr<LockDriver> openProxied(const std::string& query = "") const {
    return openVersion(database, proxy.port(), query);
  }
  bool isFree(const std::string& key) const { return !direct->holder(key, soon()); }

  /// Of the tests' own user.
  Poco::Data::Session session() const;

  /// The first column of the first row, as the tests' own user sees it.
  std::string ask(const std::string& query) const;

  /// One of the server's own counts.
  std::int64_t status(const std::string& name) const;

  DatabaseServer& server;
  const std::string database = server.newDatabase();
  FaultProxy proxy{server.port()};
  const std::shared_ptr<LockDriver> direct = openVersion(database, server.port());
};

/// For tests that are run on each server.
class VersionTest : public ::testing::TestWithParam<Brand> {
 protected:
  VersionStore store{GetParam()};
};

inline std::string brandName(const ::testing::TestParamInfo<Brand>& info) { return nameOf(info.param); }

/// The time of a process that is paused.
class StoppedClock final : public Clock {
 public:
  Instant now() const noexcept override { return now_; }
  void wait(std::unique_lock<std::mutex>& held, std::condition_variable& wakeUp, Instant until) override {
    systemClock()->wait(held, wakeUp, saturatingAdd(systemClock()->now(), until - now_));
  }

 private:
  const Instant now_ = systemClock()->now();
};

}  // namespace lockkeeper::test
