#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lockkeeper/environment.h"
#include "lockkeeper/redis/use.h"
#include "lockkeeper/store_registry.h"
#include "redis_server.h"
#include "wait_until.h"

#include <gtest/gtest.h>

namespace lockkeeper::test {

/// Keeps what a driver and a manager have told.
class Witness final : public Listener {
 public:
  void on(const Event& event) override {
    const std::string key(event.key);
    if (event.kind == EventKind::lost) add(key + " lost: " + toString(event.loss));
    if (event.kind == EventKind::released) add(key + " released");
    if (event.kind == EventKind::noted) add(std::string(event.text));
  }

  bool heard(const std::string& part) const {
    const std::lock_guard guard(mutex_);
    return text_.find(part) != std::string::npos;
  }
  std::string text() const {
    const std::lock_guard guard(mutex_);
    return text_;
  }

 private:
  void add(const std::string& line) {
    const std::lock_guard guard(mutex_);
    text_ += line + "\n";
  }

  mutable std::mutex mutex_;
  std::string text_;
};

/// A server, legacy clients in PHP, and ours, on the keys under "lock:".
class LegacyTest : public ::testing::Test {
 protected:
  static constexpr const char* uncertain = "ownership uncertain (legacy client)";

  std::string uri(const std::string& parameters = "") const {
    return "redis+legacy://127.0.0.1:" + std::to_string(server.port()) + "/0?keyPrefix=lock:" + parameters;
  }
  std::shared_ptr<LockDriver> open(const std::string& parameters = "") const {
    StoreRegistry registry;
    redis::use(registry);
    return registry.open(uri(parameters), environment());
  }
  Environment environment() const {
    Environment result;
    result.listener = witness;
    return result;
  }

  static Instant soon() { return systemClock()->now() + std::chrono::seconds{10}; }
  static bool granted(const AcquireResult& result) { return std::holds_alternative<Granted>(result); }

  static std::string script(const std::string& name) { return std::string(LEGACY_CLIENTS) + "/" + name; }

  std::vector<std::string> phpLine(const std::string& method, const std::vector<std::string>& arguments,
                                   const std::string& lockClass = "LegacyLock") const {
    std::vector<std::string> line{"php", script("call.php"), std::to_string(server.port()), lockClass,
                                  method};
    line.insert(line.end(), arguments.begin(), arguments.end());
    return line;
  }
  /// What a PHP client's call returns, as JSON.
  std::string php(const std::string& method, const std::vector<std::string>& arguments,
                  const std::string& lockClass = "LegacyLock") const {
    const Finished finished = runToEnd(phpLine(method, arguments, lockClass));
    EXPECT_EQ(finished.exitCode, 0) << finished.output << finished.errors;
    return finished.output;
  }

  long long serverSeconds() const { return std::stoll(server.command({"TIME"})); }
  std::string inSeconds(long long from) const { return std::to_string(serverSeconds() + from); }
  void put(const std::string& key, const std::string& value) const {
    ASSERT_EQ(server.command({"SET", "lock:" + key, value}), "OK");
  }
  std::string valueOf(const std::string& key) const { return server.command({"GET", "lock:" + key}); }
  long long ttlOf(const std::string& key) const {
    return std::stoll(server.command({"PTTL", "lock:" + key}));
  }

  const RedisServer server;
  const std::shared_ptr<Witness> witness = std::make_shared<Witness>();
};

/// Somebody who wants "lock:k".
struct Claimant {
  Token token = Token::generate(*systemRandom());
  std::string key = "k";

  Claim claim() const { return {key, token, "test:1"}; }
  AcquireRequest request(std::chrono::milliseconds ttl = std::chrono::minutes{10}) const {
    return {.claim = claim(), .ttl = ttl, .deadline = systemClock()->now() + std::chrono::seconds{10}};
  }
  Renewal renewal() const { return {.claim = claim(), .ttl = std::chrono::minutes{10}}; }
};

}  // namespace lockkeeper::test
