#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "blocks.h"
#include "configurations.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/poco/idempotency.h"
#include "lockkeeper/poco/lock_services.h"
#include "lockkeeper/poco/rate_limit_filter.h"
#include "lockkeeper/poco/request_locks.h"
#include "lockkeeper/redis/use.h"

namespace lockkeeper::test {
namespace {

/// Reads it as an application with everything in it does; throws what that refuses.
void read(Poco::Util::AbstractConfiguration& configuration) {
  StoreRegistry stores;
  redis::use(stores);
  mysql::use(stores);
  if (!configuration.has("lockkeeper.store")) configuration.setString("lockkeeper.store", "memory:");
  poco::fromConfiguration(configuration, stores);
  const auto user = [](const Poco::Net::HTTPServerRequest&) { return std::string("somebody"); };
  const auto limiter = std::make_shared<RateLimiter>(stores.openRates("memory:"));
  auto limits = poco::RateLimitOptions::fromConfiguration(configuration);
  limits.clients.user = user;
  poco::RateLimitFilter(limiter, limits);
  const auto locks = std::make_shared<LockManager>(stores.open("memory:"));
  auto requestLocks = poco::RequestLockOptions::fromConfiguration(configuration);
  requestLocks.clients.user = user;
  poco::RequestLocks(locks, requestLocks);
  auto idempotency = poco::IdempotencyOptions::fromConfiguration(configuration);
  idempotency.clients.user = user;
  poco::Idempotency(locks, stores.openValues("memory:"), idempotency);
}

TEST(Documentation, ShowsConfigurationsThatAreAccepted) {
  ASSERT_EQ(::setenv("REDIS_PASSWORD", "secret", 1), 0);
  const std::map<std::string, poco::Configuration (*)(const std::string&)> parsers{
      {"properties", poco::properties}, {"json", poco::json}, {"xml", poco::xml}};
  for (const auto& [language, parse] : parsers) {
    for (const Block& block : blocksOf(language)) {
      try {
        read(*parse(block.text));
      } catch (const std::exception& error) {
        ADD_FAILURE_AT(block.page.c_str(), block.line) << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace lockkeeper::test
