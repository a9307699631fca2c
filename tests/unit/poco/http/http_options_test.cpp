#include <gtest/gtest.h>

#include "config/configurations.h"
#include "lockkeeper/error.h"
#include "lockkeeper/memory/memory_driver.h"
#include "lockkeeper/poco/idempotency.h"
#include "lockkeeper/poco/rate_limit_filter.h"
#include "lockkeeper/poco/request_locks.h"
#include "refusal.h"

namespace lockkeeper::poco {
namespace {

using namespace std::chrono_literals;
using test::refusalOf;

std::shared_ptr<LockManager> manager() {
  return std::make_shared<LockManager>(std::make_shared<MemoryDriver>());
}

/// The message of the ConfigError with which `Options` refuse a configuration.
template <class Options>
std::string configurationRefusal(const std::string& text) {
  return refusalOf<ConfigError>([&] { Options::fromConfiguration(*properties(text)); });
}

std::string lockRefusal(std::vector<LockedRoute> routes) {
  return refusalOf([&] { RequestLocks(manager(), {.routes = std::move(routes)}); });
}

std::string keyRefusal(IdempotencyOptions options) {
  return refusalOf([&] { Idempotency(manager(), std::make_shared<MemoryValues>(), std::move(options)); });
}

LockedRoute lockedOrders() { return {.name = "order", .match = "PUT /orders/{id}", .by = "path id"}; }
IdempotentRoute payments() { return {.name = "pay", .match = "POST /payments", .client = "address"}; }

IdempotencyOptions optionsFor(const IdempotentRoute& route) {
  IdempotencyOptions options;
  options.routes.push_back(route);
  return options;
}

#define EXPECT_NAMES(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(RequestLockOptions, AcceptsWhatItShould) {
  EXPECT_EQ(lockRefusal({lockedOrders()}), "accepted");
  EXPECT_EQ(lockRefusal({}), "accepted");
}

TEST(RequestLockOptions, RefusesWhatCannotBeMeant) {
  const auto changed = [](auto&& change) {
    LockedRoute route = lockedOrders();
    change(route);
    return lockRefusal({route});
  };
  EXPECT_NAMES(changed([](auto& route) { route.match = "put /orders/{id}"; }),
               "lockkeeper.http.locks.order.match");
  EXPECT_NAMES(changed([](auto& route) { route.match = "PUT orders"; }), "no request can match");
  EXPECT_NAMES(changed([](auto& route) { route.match = ""; }), "lockkeeper.http.locks.order.match");
  EXPECT_NAMES(changed([](auto& route) { route.by = ""; }), "lockkeeper.http.locks.order.by");
  EXPECT_NAMES(changed([](auto& route) { route.by = "path number"; }), "'path number'");
  EXPECT_NAMES(changed([](auto& route) { route.by = "path id, address, all, address, address"; }), "5 parts");
  EXPECT_NAMES(changed([](auto& route) { route.by = "json id"; }), "'json id'");
  EXPECT_NAMES(changed([](auto& route) { route.by = "user"; }), "user");
  EXPECT_NAMES(changed([](auto& route) { route.name = ""; }), "a name in lockkeeper.http.locks is ''");
  EXPECT_NAMES(changed([](auto& route) { route.scope = "a b"; }), "'a b'");
  EXPECT_NAMES(changed([](auto& route) { route.lock.ttl = 1ms; }), "ttl is 1ms");
  EXPECT_NAMES(changed([](auto& route) { route.lock.waitFor = -1ms; }), "waitFor is -1ms");
  EXPECT_NAMES(refusalOf([] { RequestLocks(manager(), {.maxWaiting = 10'001}); }), "maxWaiting is 10001");
  LockedRoute twin = lockedOrders();
  twin.name = "twin";
  twin.match = "PUT /orders/{number}";
  twin.by = "all";
  EXPECT_NAMES(lockRefusal({lockedOrders(), twin}), "'twin'");
}

TEST(RequestLockOptions, AreReadFromTheConfiguration) {
  const RequestLockOptions options = RequestLockOptions::fromConfiguration(
      *properties("lockkeeper.http.trustedProxies = 10.0.0.0/8\n"
                  "lockkeeper.http.locks.order.match = PUT /orders/{id}\n"
                  "lockkeeper.http.locks.order.by = path id\n"
                  "lockkeeper.http.locks.order.scope = orders\n"
                  "lockkeeper.http.locks.order.ttl = 5s\n"
                  "lockkeeper.http.locks.order.waitFor = 250ms\n"
                  "lockkeeper.http.locks.order.maxHold = 1m\n"
                  "lockkeeper.http.maxWaiting = 3\n"));
  ASSERT_EQ(options.routes.size(), 1U);
  const LockedRoute& route = options.routes.front();
  EXPECT_EQ(route.name, "order");
  EXPECT_EQ(route.match, "PUT /orders/{id}");
  EXPECT_EQ(route.by, "path id");
  EXPECT_EQ(route.scope, "orders");
  EXPECT_EQ(route.lock.ttl, 5s);
  EXPECT_EQ(route.lock.waitFor, 250ms);
  EXPECT_EQ(route.lock.maxHold, 1min);
  EXPECT_EQ(options.maxWaiting, 3U);
  EXPECT_EQ(options.clients.trustedProxies, "10.0.0.0/8");
  const std::string order = "lockkeeper.http.locks.order.";
  EXPECT_NAMES(configurationRefusal<RequestLockOptions>(order + "tll = 5s\n"), "tll");
  EXPECT_NAMES(configurationRefusal<RequestLockOptions>(order + "ttl = soon\n"), "soon");
  EXPECT_NAMES(configurationRefusal<RequestLockOptions>(order + "match = PUT /{id}\n"),
               "order.by is missing");
  const std::string whole = order + "match = PUT /{id}\n" + order + "by = user\n";
  EXPECT_NAMES(configurationRefusal<RequestLockOptions>(whole + order + "ttl = 1ms\n"), "ttl is 1ms");
  EXPECT_EQ(configurationRefusal<RequestLockOptions>(whole), "accepted")
      << "the program may still say who its users are";
}

TEST(Filters, RefuseToBeMadeOfNothing) {
  const auto values = std::make_shared<MemoryValues>();
  EXPECT_NAMES(refusalOf([] { RequestLocks(nullptr, {}); }), "LockManager");
  EXPECT_NAMES(refusalOf([&] { Idempotency(nullptr, values, {}); }), "LockManager");
  EXPECT_NAMES(refusalOf([] { Idempotency(manager(), nullptr, {}); }), "ValueStore");
  EXPECT_NAMES(refusalOf([] { RateLimitFilter(nullptr, {}); }), "RateLimiter");
}

TEST(IdempotencyOptions, AcceptsWhatItShould) { EXPECT_EQ(keyRefusal({.routes = {payments()}}), "accepted"); }

TEST(IdempotencyOptions, RefusesWhatCannotBeMeant) {
  const auto changed = [](auto&& change) {
    IdempotentRoute route = payments();
    change(route);
    return keyRefusal(optionsFor(route));
  };
  EXPECT_NAMES(changed([](auto& route) { route.match = "POST payments"; }), "idempotency.routes.pay.match");
  EXPECT_NAMES(changed([](auto& route) { route.match = "GET /payments"; }), "GET is not one of");
  EXPECT_NAMES(changed([](auto& route) { route.client = "user"; }), "does not tell who its users are");
  EXPECT_NAMES(changed([](auto& route) { route.client = ""; }), "idempotency.routes.pay.client");
  EXPECT_NAMES(changed([](auto& route) { route.keepFor = 0ms; }), "keepFor is 0s");
  EXPECT_NAMES(changed([](auto& route) { route.ttl = 0ms; }), "ttl is 0s");
  EXPECT_NAMES(changed([](auto& route) { route.name = "a:b"; }), "'a:b'");
  EXPECT_NAMES(keyRefusal({.routes = {payments()}, .maxBody = 0}), "maxBody is 0");
  EXPECT_NAMES(keyRefusal({.routes = {payments()}, .bodyTimeout = 9ms}), "bodyTimeout is 9ms");
  EXPECT_NAMES(keyRefusal({.routes = {payments()}, .maxAnswer = (1U << 20) + 1}), "maxAnswer is 1048577");
  EXPECT_NAMES(keyRefusal({.routes = {payments()}, .keyNamespace = "a b"}), "'a b'");
  EXPECT_NAMES(keyRefusal({.routes = {payments()}, .operationTimeout = 0ms}), "operationTimeout is 0s");
}

TEST(IdempotencyOptions, AreReadFromTheConfiguration) {
  const IdempotencyOptions options = IdempotencyOptions::fromConfiguration(
      *properties("lockkeeper.namespace = shop\n"
                  "lockkeeper.http.idempotency.maxBody = 4096\n"
                  "lockkeeper.http.idempotency.maxAnswer = 8192\n"
                  "lockkeeper.http.idempotency.maxStored = 100000\n"
                  "lockkeeper.http.idempotency.maxStoredPerClient = 50000\n"
                  "lockkeeper.http.idempotency.perHost = off\n"
                  "lockkeeper.http.idempotency.routes.pay.match = POST /payments\n"
                  "lockkeeper.http.idempotency.routes.pay.client = header Authorization\n"
                  "lockkeeper.http.idempotency.routes.pay.required = off\n"
                  "lockkeeper.http.idempotency.routes.pay.keepFor = 2h\n"
                  "lockkeeper.http.idempotency.routes.pay.ttl = 5s\n"));
  ASSERT_EQ(options.routes.size(), 1U);
  const IdempotentRoute& route = options.routes.front();
  EXPECT_EQ(route.client, "header Authorization");
  EXPECT_FALSE(route.required);
  EXPECT_EQ(route.keepFor, 2h);
  EXPECT_EQ(route.ttl, 5s);
  EXPECT_EQ(options.maxBody, 4096U);
  EXPECT_EQ(options.maxAnswer, 8192U);
  EXPECT_EQ(options.maxStored, 100'000U);
  EXPECT_EQ(options.maxStoredPerClient, 50'000U);
  EXPECT_FALSE(options.perHost);
  EXPECT_EQ(options.keyNamespace, "shop");
  const std::string root = "lockkeeper.http.idempotency.";
  EXPECT_NAMES(configurationRefusal<IdempotencyOptions>(root + "route.x = 1\n"), "route");
  EXPECT_NAMES(configurationRefusal<IdempotencyOptions>(root + "maxAnswer = 5\n"), "maxAnswer is 5");
}

}  // namespace
}  // namespace lockkeeper::poco
