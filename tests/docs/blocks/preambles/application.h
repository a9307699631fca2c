#pragma once

#include <Poco/Logger.h>
#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPRequestHandlerFactory.h>
#include <Poco/Net/HTTPServer.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>
#include <Poco/Util/ServerApplication.h>
#include <Poco/Util/Timer.h>
#include <lockkeeper/cached_loader.h>
#include <lockkeeper/error.h>
#include <lockkeeper/exclusive_task.h>
#include <lockkeeper/leader_election.h>
#include <lockkeeper/poco/health_handler.h>
#include <lockkeeper/poco/idempotency.h>
#include <lockkeeper/poco/lock_subsystem.h>
#include <lockkeeper/poco/logging_listener.h>
#include <lockkeeper/poco/metrics_handler.h>
#include <lockkeeper/poco/prometheus_collectable.h>
#include <lockkeeper/poco/rate_limit_filter.h>
#include <lockkeeper/poco/request_locks.h>
#include <lockkeeper/poco/tasks.h>
#include <lockkeeper/redis/value_store.h>
#include <lockkeeper/schedule/scheduled_task.h>
#include <prometheus/exposer.h>

#include <optional>

#include "every_page.h"

namespace pages {

using namespace Poco::Net;

// Of the application.
Poco::Util::AbstractConfiguration& config();
Poco::Logger& logger();

struct MyHandlers : HTTPRequestHandlerFactory {
  HTTPRequestHandler* createRequestHandler(const HTTPServerRequest& request) override;
};
extern const ServerSocket socket;
std::string userOf(const HTTPServerRequest& request);

struct Orders {
  void update(int order, lockkeeper::Fence fence);
};
extern Orders store;
extern const int order;

struct Dispatcher {
  void start(std::optional<lockkeeper::Fence> fence);
  void stop();
};
extern Dispatcher dispatcher;

struct Database {
  std::optional<std::string> userAsJson(std::string_view id);
};
extern Database database;

struct Tracing final : lockkeeper::Listener {
  void on(const lockkeeper::Event& event) override;
};
void addSpan(std::string key, lockkeeper::Instant began, lockkeeper::Instant ended, int attempts);

void writeReport(std::optional<lockkeeper::Fence> fence, std::stop_token stop);

// Of lockkeeper.
extern const std::shared_ptr<lockkeeper::LockManager> manager, locks;
extern lockkeeper::ManagerOptions options;
extern const std::shared_ptr<lockkeeper::poco::Metrics> metrics;
extern lockkeeper::poco::LockServices services;
extern lockkeeper::poco::RateLimitFilter filter;

extern prometheus::Exposer exposer;

}  // namespace pages
