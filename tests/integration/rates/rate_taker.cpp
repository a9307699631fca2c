// Takes from the limit of the key "k" as fast as it can, and writes what the store granted: its time, and
// from when to when the bucket was used by it. Arguments: the store, and how often to ask.

#include <iostream>
#include <string>

#include "lockkeeper/mysql/use.h"
#include "lockkeeper/postgres/use.h"
#include "lockkeeper/rate_policy.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "rate_taker.h"

namespace lockkeeper::test {
namespace {

int takeOften(const std::string& store, int often) {
  StoreRegistry registry;
  redis::use(registry);
  mysql::use(registry);
  postgres::use(registry);
  const auto driver = registry.openRates(store);
  const RatePolicy policy = takersPolicy();
  for (int count = 0; count < often; ++count) {
    RateCharge charge{.key = "k", .law = &policy.law()};
    driver->take({&charge, 1}, systemClock()->now() + std::chrono::seconds{10});
    const RateOutcome& outcome = charge.outcome;
    if (outcome.granted == 0) continue;
    std::cout << outcome.storeTime << " " << outcome.slot.micros << " "
              << outcome.storeTime + outcome.resetAfter.count() << "\n";
  }
  return std::cout.flush() ? 0 : 1;
}

}  // namespace
}  // namespace lockkeeper::test

int main(int count, char** arguments) {
  return count == 3 ? lockkeeper::test::takeOften(arguments[1], std::stoi(arguments[2])) : 64;
}
