#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "app_server.h"
#include "lockkeeper/poco/idempotency.h"
#include "redis_server.h"
#include "wait_until.h"

namespace lockkeeper::test {

using poco::IdempotencyEvent;

/// A Redis, and what servers before it report.
class IdempotencyTest : public ::testing::Test {
 protected:
  /// All clients are one unless `client` tells them apart.
  poco::IdempotencyOptions options(const std::string& match = "POST /orders/*",
                                   const std::string& client = "all") {
    poco::IdempotencyOptions options;
    options.routes = {{.name = "order", .match = match, .client = client}};
    options.report = [this](const poco::IdempotencyReport& report) {
      const std::lock_guard held(mutex_);
      events_.push_back(report.event);
    };
    return options;
  }

  std::function<Factory(Factory)> once() { return once(options()); }
  std::function<Factory(Factory)> once(poco::IdempotencyOptions options) {
    return [this, options](Factory handlers) {
      return poco::Idempotency(managerOn(redis.uri()), valuesOn(redis.uri()), options)
          .wrap(std::move(handlers));
    };
  }

  /// Answers each run with its number.
  Serve counting(int status = 201) {
    return [this, status](HTTPServerRequest&, HTTPServerResponse& response) {
      reply(response, status, "run " + std::to_string(++runs));
    };
  }

  /// Answers each run with so many bytes.
  Serve answeringWith(std::size_t bytes) {
    return [this, bytes](HTTPServerRequest&, HTTPServerResponse& response) {
      ++runs;
      reply(response, 201, std::string(bytes, 'b'));
    };
  }

  long count(IdempotencyEvent event) const {
    const std::lock_guard held(mutex_);
    return std::ranges::count(events_, event);
  }

  RedisServer redis;
  std::atomic<int> runs = 0;

 private:
  mutable std::mutex mutex_;
  std::vector<IdempotencyEvent> events_;
};

}  // namespace lockkeeper::test
