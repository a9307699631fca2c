#include "serve.h"

#include <Poco/Exception.h>
#include <signal.h>

#include <iostream>
#include <memory>
#include <optional>
#include <thread>

#include "gateway_server.h"
#include "lockkeeper/error.h"
#include "lockkeeper/poco/lock_services.h"
#include "lockkeeper/poco/rate_limit_filter.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "outbox.h"
#include "queue/memory_queue.h"
#include "queue/redis_queue.h"
#include "settings.h"
#include "worker.h"

namespace sms_gateway {
namespace {

using lockkeeper::poco::LockServices;
using lockkeeper::poco::RateLimitFilter;
using lockkeeper::poco::RateLimitOptions;
using lockkeeper::poco::RateLimitReport;

sigset_t blockSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

std::unique_ptr<JobQueue> openQueue(const Settings& settings, Parts parts) {
  if (settings.store != "memory:") {
    return std::make_unique<RedisQueue>(lockkeeper::StoreUri::parse(settings.store), settings.queue,
                                        settings.queueSize);
  }
  if (parts.server && parts.worker) return std::make_unique<MemoryQueue>(settings.queueSize);
  throw lockkeeper::ConfigError("memory: is of one process: server and worker must be in the same");
}

void log(const RateLimitReport& report) {
  std::cerr << "sms_gateway: " + std::string(report.route) + ": limit " + report.decision.policy +
                   (report.decision.allowed ? " allows" : " refuses") +
                   (report.decision.outage ? " without its store" : "") +
                   (report.dryRun ? " " + std::string(report.key) + " (dry run)" : "") + '\n';
}

/// New limits for the filter and the worker: all of them, or none.
void reload(LockServices& services, const std::function<Configuration()>& readConfiguration) {
  try {
    services.reload(lockkeeper::poco::readSettings(*readConfiguration()));
    std::cout << "New limits." << std::endl;
  } catch (const Poco::Exception& error) {
    std::cerr << "sms_gateway: the limits stay as they were: " + error.displayText() + '\n';
  } catch (const std::exception& error) {
    std::cerr << "sms_gateway: the limits stay as they were: " + std::string(error.what()) + '\n';
  }
}

}  // namespace

void serve(Parts parts, const std::function<Configuration()>& readConfiguration) {
  const sigset_t signals = blockSignals();  // before any thread starts, so that all leave them to us
  const Configuration configuration = readConfiguration();
  // Locks and limits as lockkeeper.* says. A store that is written there needs its driver, one line each.
  lockkeeper::StoreRegistry stores;
  lockkeeper::redis::use(stores);
  auto services = lockkeeper::poco::fromConfiguration(*configuration, stores);
  const Settings settings = Settings::read(*configuration);
  const auto queue = openQueue(settings, parts);
  Outbox outbox(settings.outbox);
  RateLimitOptions limits = RateLimitOptions::fromConfiguration(*configuration);
  limits.report = log;
  RateLimitFilter filter(services.sharedLimits(), limits);
  services.follow(filter);

  std::optional<Worker> worker;
  if (parts.worker) worker.emplace(settings, services, *queue, outbox);
  std::jthread working;
  if (parts.worker) working = std::jthread([&](const std::stop_token& stop) { worker->run(stop); });
  std::optional<GatewayServer> server;
  if (parts.server) {
    server.emplace(filter.wrap(makeHandlers(*queue)), settings.port);
    std::cout << "Taking messages. Try:\n  curl -i http://127.0.0.1:" << server->port()
              << R"(/sms -d '{"phone":"+4930123456","text":"hello"}')"
              << "\n";
  }
  std::cout << "End with Ctrl-C." << std::endl;
  int signal = 0;
  while (::sigwait(&signals, &signal) == 0 && signal == SIGHUP) {
    reload(services, readConfiguration);
  }
}

}  // namespace sms_gateway
