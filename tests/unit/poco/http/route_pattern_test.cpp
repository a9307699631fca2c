#include "http/route/route_pattern.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "http/route/request_path.h"
#include "lockkeeper/error.h"

namespace lockkeeper::poco {
namespace {

RoutePattern pattern(const std::string& text) { return RoutePattern::parse("match", text); }

bool matches(const std::string& text, const std::string& method, const std::string& target) {
  return pattern(text).matches(method, pathSegments(target).value());
}

TEST(RoutePattern, MatchesMethodAndPath) {
  EXPECT_TRUE(matches("POST /sms", "POST", "/sms"));
  EXPECT_FALSE(matches("POST /sms", "GET", "/sms"));
  EXPECT_FALSE(matches("POST /sms", "POST", "/smss"));
  EXPECT_FALSE(matches("POST /sms", "POST", "/sms/7"));
  EXPECT_FALSE(matches("POST /sms", "POST", "/"));
  EXPECT_TRUE(matches("* /sms", "DELETE", "/sms"));
  EXPECT_TRUE(matches("GET /", "GET", "/"));
  EXPECT_TRUE(matches("GET /sms", "HEAD", "/sms")) << "a HEAD costs what a GET costs";
}

TEST(RoutePattern, ANameStandsForOneSegment) {
  EXPECT_TRUE(matches("PUT /orders/{id}", "PUT", "/orders/42"));
  EXPECT_FALSE(matches("PUT /orders/{id}", "PUT", "/orders"));
  EXPECT_FALSE(matches("PUT /orders/{id}", "PUT", "/orders/42/items"));
  EXPECT_EQ(pattern("PUT /shops/{shop}/orders/{id}").position("id"), 3U);
  EXPECT_EQ(pattern("PUT /orders/{id}").position("shop"), std::nullopt);
}

TEST(RoutePattern, AStarStandsForTheRest) {
  for (const char* target : {"/api", "/api/", "/api/a", "/api/a/b"}) {
    EXPECT_TRUE(matches("GET /api/*", "GET", target)) << target;
  }
  EXPECT_FALSE(matches("GET /api/*", "GET", "/apis"));
  EXPECT_TRUE(matches("* /*", "GET", "/"));
}

TEST(RoutePattern, TheMoreSpecificOneDecides) {
  const auto expectBefore = [](const char* specific, const char* general) {
    EXPECT_TRUE(pattern(specific).before(pattern(general))) << specific << " before " << general;
    EXPECT_FALSE(pattern(general).before(pattern(specific))) << general << " before " << specific;
  };
  expectBefore("HEAD /a", "GET /a");
  expectBefore("GET /a", "* /a");
  expectBefore("GET /a", "GET /a/*");
  expectBefore("* /a", "GET /a/*");
  expectBefore("GET /a/b", "GET /a/{x}");
  expectBefore("GET /a/{x}", "GET /a/*");
  expectBefore("GET /a/{x}/c", "GET /{x}/b/c");
  expectBefore("GET /{x}", "* /*");
}

TEST(RoutePattern, OneThatCanNeverMatchIsAnError) {
  for (const char* text : {"",
                           "POST",
                           "/sms",
                           "post /sms",
                           "POST|GET /sms",
                           "POST sms",
                           "POST  /sms",
                           "POST /sms/",
                           "POST //sms",
                           "POST /./sms",
                           "POST /a/../sms",
                           "POST /a/*/b",
                           "POST /a*",
                           "POST /{",
                           "POST /{}",
                           "POST /a{x}",
                           "POST /{x}/{x}",
                           "POST /{x?}",
                           "POST /sms?a=b",
                           "POST /sms#a",
                           "POST /%73ms"}) {
    try {
      pattern(text);
      ADD_FAILURE() << text;
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find("no request can match"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(quoted(text)), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace lockkeeper::poco
