#include "http/route/request_path.h"

#include <Poco/Exception.h>
#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPRequestHandlerFactory.h>
#include <Poco/URI.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fake_request.h"
#include "fake_response.h"
#include "lockkeeper/memory/memory_driver.h"
#include "lockkeeper/poco/idempotency.h"
#include "lockkeeper/poco/rate_limit_filter.h"
#include "lockkeeper/poco/request_locks.h"
#include "lockkeeper/store_registry.h"
#include "temp_folder.h"

namespace lockkeeper::poco {
namespace {

using Poco::Net::HTTPServerRequest;
using Poco::Net::HTTPServerResponse;
using Handlers = std::unique_ptr<Poco::Net::HTTPRequestHandlerFactory>;
using Serve = std::function<void(HTTPServerRequest& request, HTTPServerResponse& response)>;
using Segments = std::vector<std::string>;

TEST(RequestHost, IsThatOfTheTargetOrOfTheField) {
  const auto host = [](const std::string& target) {
    FakeRequest request("GET", target);
    request.set("Host", "Shop.example:8080");
    return hostOf(request);
  };
  EXPECT_EQ(host("/sms"), "shop.example");
  EXPECT_EQ(host("http://Other.example:80/sms"), "other.example");
  EXPECT_EQ(host("%[ /sms"), "") << "no target of a request";
}

TEST(RequestPath, HasTheDecodedSegmentsOfAPlainPath) {
  EXPECT_EQ(pathSegments("/"), Segments{});
  EXPECT_EQ(pathSegments("/?a=/../b"), Segments{});
  EXPECT_EQ(pathSegments("/sms"), Segments{"sms"});
  EXPECT_EQ(pathSegments("/sms/"), Segments{"sms"}) << "one slash at the end is no segment";
  EXPECT_EQ(pathSegments("/%73ms?x=\\"), Segments{"sms"});
  EXPECT_EQ(pathSegments("/orders/a%20b+c/..."), (Segments{"orders", "a b+c", "..."}));
  EXPECT_EQ(pathSegments("/.well-known/a..b/\xc3\xa4"), (Segments{".well-known", "a..b", "\xc3\xa4"}));
  EXPECT_EQ(pathSegments("http://shop.example:8080/sms?x"), Segments{"sms"});
  EXPECT_EQ(pathSegments("HTTPS://shop.example?x"), Segments{});
  EXPECT_EQ(pathSegments("*"), Segments{"*"});
}

TEST(RequestPath, RefusesWhatIsNoPath) {
  for (const char* target : {"", "sms", "?x", "#x", "shop.example:80", "http:sms", "http:/sms", "http://",
                             "http:///sms", "http://shop.example:port/sms", "ftp://shop.example/sms",
                             "file:///sms", "/sms#top", "/sm%zz", "/sms%", "/sms%7"}) {
    EXPECT_EQ(pathSegments(target), std::nullopt) << target;
  }
}

/// Parts of a path that somebody may read in another way than somebody else.
const std::vector<std::string>& ambiguous() {
  static const std::vector<std::string>& parts = *new std::vector<std::string>{
      ".",    "..",      "%2e", "%2E",    ".%2e",        "%2E.",      "%2e%2e",
      "",     "/",       "%2f", "x%2Fy",  "..%2f..",     "%5c",       "\\",
      "..\\", "..%5C..", "%00", "x%00",   "%0a",         "x%7f",      "%",
      "%zz",  "x%2",     "#x",  "%2e/..", "x/%2e%2e%2f", "..;x/../a", std::string(1, '\0')};
  return parts;
}

/// 200 spellings and more, all of which one dispatcher or another takes for /orders/7.
std::vector<std::string> spellings() {
  std::vector<std::string> all{"/orders/7",   "/orders/7/",     "/orders/7?x",     "/%6frders/7",
                               "/orders/%37", "/ORDERS/7",      "/orders",         "/orders/",
                               "/orders/7/8", "/orders/a%20b",  "/orders/%252e",   "http://shop/orders/7",
                               "orders/7",    "/orders/7;x=..", "/orders/7?a=%2e", "/orders/..."};
  for (const std::string& part : ambiguous()) {
    for (const char* where : {"/@/orders/7", "/orders/@/7", "/orders/7/@/8", "/x/@/orders/7", "/orders/x/@/7",
                              "/orders/@/../x", "http://shop/@/orders/7"}) {
      std::string target = where;
      target.replace(target.find('@'), 1, part);
      all.push_back(target);
    }
  }
  return all;
}

TEST(RequestPath, RefusesEveryAmbiguousPart) {
  EXPECT_GE(spellings().size(), 200U);
  for (const std::string& part : ambiguous()) {
    for (const char* where : {"/@/orders/7", "/orders/@/7", "/x/@/y", "http://shop/x/@/y"}) {
      std::string target = where;
      target.replace(target.find('@'), 1, part);
      EXPECT_EQ(pathSegments(target), std::nullopt) << target;
    }
  }
}

/// The order that a handler would change, if it takes a request for one for an order.
using Dispatcher = std::optional<std::string> (*)(const std::string& target);

std::optional<std::string> byPrefix(const std::string& target) {
  const std::string prefix = "/orders/";
  if (target.starts_with(prefix)) return target.substr(prefix.size(), target.find('?') - prefix.size());
  const std::string path = Poco::URI(target).getPath();
  return path.starts_with(prefix) ? std::optional(path.substr(prefix.size())) : std::nullopt;
}

std::optional<std::string> bySegments(const std::string& target) {
  Segments segments;
  Poco::URI(target).getPathSegments(segments);
  return segments.size() > 1 && segments[0] == "orders" ? std::optional(segments[1]) : std::nullopt;
}

std::optional<std::string> byExactPath(const std::string& target) {
  const std::string path = Poco::URI(target).getPath();
  return path == "/orders/7" || path == "/orders/7/8" ? std::optional<std::string>("7") : std::nullopt;
}

class Factory final : public Poco::Net::HTTPRequestHandlerFactory {
 public:
  explicit Factory(Serve serve) : serve_(std::move(serve)) {}

  Poco::Net::HTTPRequestHandler* createRequestHandler(const HTTPServerRequest&) override {
    class Handler final : public Poco::Net::HTTPRequestHandler {
     public:
      explicit Handler(const Serve& serve) : serve_(serve) {}
      void handleRequest(HTTPServerRequest& request, HTTPServerResponse& response) override {
        serve_(request, response);
      }

     private:
      const Serve& serve_;
    };
    return new Handler(serve_);
  }

 private:
  const Serve serve_;
};

struct Filter {
  std::string name;
  std::function<Handlers(Handlers)> wrap;
};

/// All that decide by the path of a request. Each has one route for an order and one for what is below it.
std::vector<Filter> filters() {
  const auto manager = std::make_shared<LockManager>(std::make_shared<MemoryDriver>());
  const std::string one = "PUT /orders/{id}";
  const std::string below = "PUT /orders/{id}/*";
  const auto locks = std::make_shared<RequestLocks>(
      manager,
      RequestLockOptions{.routes = {{.name = "order", .match = one, .by = "path id"},
                                    {.name = "below", .match = below, .by = "path id", .scope = "order"}}});
  IdempotencyOptions idempotent;
  idempotent.routes = {{.name = "order", .match = one, .client = "all"},
                       {.name = "below", .match = below, .client = "all"}};
  const auto once = std::make_shared<Idempotency>(manager, std::make_shared<MemoryValues>(), idempotent);
  RateLimitOptions limited;
  limited.policies.emplace("many", RatePolicy::parse("many", {{"rate", "1000000/s"}}));
  limited.routes = {{.name = "order", .match = one, .limits = {{"many", "path id"}}},
                    {.name = "below", .match = below, .limits = {{"many", "path id"}}}};
  const auto limits = std::make_shared<RateLimitFilter>(
      std::make_shared<RateLimiter>(StoreRegistry().openRates("memory:")), limited);
  return {{"RequestLocks", [locks](Handlers handlers) { return locks->wrap(std::move(handlers)); }},
          {"Idempotency", [once](Handlers handlers) { return once->wrap(std::move(handlers)); }},
          {"RateLimitFilter", [limits](Handlers handlers) { return limits->wrap(std::move(handlers)); }}};
}

TEST(RequestPath, WhatAFilterDecidesOnIsWhatTheHandlerSees) {
  int number = 0;
  for (const Filter& filter : filters()) {
    for (const Dispatcher dispatcher : {byPrefix, bySegments, byExactPath}) {
      int reached = 0;
      const auto handlers = filter.wrap(std::make_unique<Factory>([&](auto& request, auto& response) {
        const std::string& target = request.getURI();
        std::optional<std::string> order;
        try {
          order = dispatcher(target);
        } catch (const Poco::SyntaxException&) {
          // it answers with an error of its own
        }
        response.setContentLength(0);
        response.send();
        if (!order || order->empty()) return;
        ++reached;
        const Lock* lock = currentLock();
        EXPECT_TRUE(lock != nullptr || response.has("RateLimit-Policy")) << filter.name << ": " << target;
        if (filter.name == "RequestLocks" && lock != nullptr && dispatcher != byPrefix) {
          EXPECT_EQ(lock->key(), "order/" + *order) << target;
        }
      }));
      for (const std::string& target : spellings()) {
        FakeRequest request("PUT", target);
        request.set("Idempotency-Key", std::to_string(++number));
        FakeResponse response;
        const std::unique_ptr<Poco::Net::HTTPRequestHandler> handler(handlers->createRequestHandler(request));
        handler->handleRequest(request, response);
        EXPECT_TRUE(response.getStatus() == 200 || response.getStatus() == 400) << target;
      }
      EXPECT_GE(reached, 2) << filter.name;
    }
  }
}

TEST(RequestPath, TheTestAboveKnowsAllFilters) {
  const auto root = std::filesystem::path(LOCKKEEPER_METRICS_PAGE).parent_path().parent_path();
  std::size_t count = 0;
  for (const auto& header :
       std::filesystem::directory_iterator(root / "adapters/poco/include/lockkeeper/poco")) {
    if (!header.is_regular_file()) continue;
    count += test::readFile(header.path()).find("final : public HttpFilter<") != std::string::npos;
  }
  EXPECT_EQ(count, filters().size());
}

}  // namespace
}  // namespace lockkeeper::poco
