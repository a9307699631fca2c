// usage: console_process STORE
// A program that shows what it did in a console of its own: locks that were granted, lost and waited for in
// vain, a limit, a task, an election, and names that try to be markup. Prints the page's address and ends
// when its standard input does.
#include <Poco/Net/HTTPServer.h>
#include <Poco/Net/HTTPServerParams.h>
#include <Poco/Net/ServerSocket.h>

#include <chrono>
#include <iostream>
#include <string>

#include "lockkeeper/exclusive_task.h"
#include "lockkeeper/leader_election.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/poco/lock_console.h"
#include "lockkeeper/rate_limiter.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/schedule/scheduled_task.h"
#include "lockkeeper/store_registry.h"

using namespace lockkeeper;
using namespace std::chrono_literals;

namespace {

const std::string attack = "<img src=x onerror=window.hit=1>";

void work(const std::shared_ptr<LockManager>& locks) {
  const Lock held = locks->lock("order:1");
  try {
    (void)locks->lock("order:1", {.waitFor = 300ms});
  } catch (const LockTimeout&) {  // as meant
  }
  (void)locks->lock(attack);
  Lock brief = locks->lock("brief", {.maxHold = 100ms});
  while (brief.valid()) std::this_thread::sleep_for(10ms);
}

void refuse(const Environment& environment, const StoreRegistry& stores, const std::string& uri) {
  RateLimiter limits(stores.openRates(uri, environment),
                     {.operationTimeout = 10s, .environment = environment});
  const RatePolicy policy = RatePolicy::parse("sms", {{"rate", "1/h"}, {"burst", "1"}});
  for (int i = 0; i < 3; ++i) (void)limits.take("+4912345", policy);
}

}  // namespace

int main(int, char** argv) {
  StoreRegistry stores;
  redis::use(stores);
  const auto activity = std::make_shared<poco::RecentActivity>();
  ManagerOptions options{.keyNamespace = "shop"};
  options.environment.listener = activity;
  const std::shared_ptr<LockDriver> store = stores.open(argv[1], options.environment);
  const auto locks = std::make_shared<LockManager>(store, options);

  work(locks);
  refuse(options.environment, stores, argv[1]);
  const auto nightly = std::make_shared<ExclusiveTask>(locks, TaskOptions{.name = "nightly" + attack},
                                                       [](const Lock&, const std::stop_token&) {});
  nightly->run();
  const ScheduledTask scheduled(nightly, Schedule::every(1h));
  const LeaderElection election(locks, {.name = "dispatcher"}, {});

  poco::LockConsole console(store, {.path = "/",
                                    .storeName = "the test's store",
                                    .keyNamespace = "shop",
                                    .interval = 100ms,
                                    .activity = activity,
                                    .health = {.locks = locks}});
  Poco::Net::HTTPServer server(console.wrap().release(),
                               Poco::Net::ServerSocket(Poco::Net::SocketAddress("127.0.0.1", 0)),
                               new Poco::Net::HTTPServerParams);
  server.start();
  std::cout << "http://" << server.socket().address().toString() << "/" << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
    if (line == "hold") (void)locks->lock("later");
  }
  server.stopAll(true);
}
