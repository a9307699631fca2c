#include "http/limit/limit_route.h"

#include <Poco/AutoPtr.h>
#include <Poco/Util/PropertyFileConfiguration.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "http/route/request_path.h"
#include "lockkeeper/error.h"

namespace lockkeeper::poco {
namespace {

const std::string limits =
    "lockkeeper.limits.perPhone.rate = 5/h\n"
    "lockkeeper.limits.total.rate = 100/s\n"
    "lockkeeper.limits.total.kind = fixed-window\n";
const std::string routes = "lockkeeper.http.routes.";

LimitRules table(const std::string& text) {
  std::istringstream stream(text);
  const Poco::AutoPtr<Poco::Util::AbstractConfiguration> configuration(
      new Poco::Util::PropertyFileConfiguration(stream));
  return LimitRules(RateLimitOptions::fromConfiguration(*configuration));
}

std::string found(const LimitRules& rules, const std::string& method, const std::string& target) {
  const LimitRoute* route = rules.find(method, pathSegments(target).value());
  return route == nullptr ? "" : route->name;
}

void expectRefused(const std::string& text, const std::string& part) {
  try {
    table(text);
    ADD_FAILURE() << text;
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
}

TEST(LimitRules, FindsTheMostSpecificRouteWhateverTheOrder) {
  const LimitRules read = table(limits + routes + "a.match = * /*\n" + routes + "a.limits.total = all\n" +
                                routes + "b.match = POST /sms\n" + routes + "b.limits.total = all\n" +
                                routes + "b.limits.perPhone = json phone\n");
  EXPECT_EQ(found(read, "POST", "/sms"), "b");
  EXPECT_EQ(found(read, "GET", "/sms"), "a");
  EXPECT_EQ(found(read, "POST", "/"), "a");
  const LimitRoute* sms = read.find("POST", {"sms"});
  ASSERT_EQ(sms->limits.size(), 2U);
  EXPECT_TRUE(sms->needsBody);
  EXPECT_FALSE(read.find("GET", {})->needsBody);
}

TEST(LimitRules, RefusesALeakyQueueSinceAFilterNeverWaits) {
  expectRefused(
      "lockkeeper.limits.calm.rate = 1/s\nlockkeeper.limits.calm.kind = leaky-queue\n" + routes +
          "a.match = * /*\n" + routes + "a.limits.calm = all\n",
      "lockkeeper.http.routes.a.limits.calm names a leaky-queue, in which callers wait for their turn, "
      "and a filter never waits: lockkeeper.limits.calm.kind = leaky-meter limits to the same rate");
}

TEST(LimitRules, WithoutRoutesEverythingPasses) {
  EXPECT_EQ(found(table(""), "GET", "/"), "");
  EXPECT_EQ(found(table(limits), "GET", "/"), "");
}

TEST(LimitRules, ARouteSaysForItselfWhetherItIsADryRun) {
  const LimitRules read = table(limits + "lockkeeper.http.dryRun = on\n" + routes + "a.match = GET /a\n" +
                                routes + "a.limits.total = all\n" + routes + "b.match = GET /b\n" + routes +
                                "b.limits.total = all\n" + routes + "b.dryRun = off\n");
  EXPECT_TRUE(read.find("GET", {"a"})->dryRun);
  EXPECT_FALSE(read.find("GET", {"b"})->dryRun);
}

TEST(LimitRules, NamesTheSettingThatIsWrong) {
  const std::string sms = limits + routes + "sms.match = POST /sms\n";
  expectRefused(sms + routes + "sms.limits.perPone = json phone\n", "lockkeeper.limits.perPone");
  expectRefused(sms + routes + "sms.limits.total = everybody\n", "routes.sms.limits.total is 'everybody'");
  expectRefused(sms, "routes.sms.limits has 0 limits");
  expectRefused("lockkeeper.http.bodyTimeout = 2h\n",
                "lockkeeper.http.bodyTimeout is 2h: it must be 10ms to 1h");
  expectRefused("lockkeeper.http.maxBody = 0\n", "lockkeeper.http.maxBody is 0: 1 to 16777216 are allowed");
  expectRefused(sms + routes + "sms.limit.total = all\n",
                "routes.sms.limit.total' is unknown: did you mean lockkeeper.http.routes.sms.limits.total?");
  expectRefused(limits + routes + "sms.limits.total = all\n", "routes.sms.match is missing");
  expectRefused(limits + routes + "sms.match = POST /sms/\n", "routes.sms.match");
  expectRefused("lockkeeper.http.dryrun = on\n", "lockkeeper.http.dryrun");
  expectRefused("lockkeeper.http.dryRun = maybe\n", "'maybe'");
  expectRefused("lockkeeper.http.maxBody = 16k\n", "'16k'");
  expectRefused("lockkeeper.http.ipv6Prefix = 129\n", "1 to 128");
  expectRefused("lockkeeper.http.trustedProxies = proxy\n", "lockkeeper.http.trustedProxies");
  expectRefused("lockkeeper.limits.total.burst = 5\n", "total");
  expectRefused("lockkeeper.limits.total.rate = 5\n", "total");
}

TEST(LimitRules, ReadsLimitsAsTheSettingsOfAnApplicationAreRead) {
  const LimitRules read = table(limits + "lockkeeper.limits.perPhone.burst =\n" + routes +
                                "sms.match = POST /sms\n" + routes + "sms.limits.perPhone = all\n");
  EXPECT_EQ(read.find("POST", {"sms"})->limits.front().policy->limit(), 5) << "an empty burst is none";
  expectRefused(limits + "lockkeeper.limits.total.knid = fixed-window\n",
                "'lockkeeper.limits.total.knid' is unknown: did you mean lockkeeper.limits.total.kind?");
}

TEST(LimitRules, ALimitMayHaveDotsInItsName) {
  const LimitRules read =
      table(limits + "lockkeeper.limits.per.phone.rate = 7/h\n" + routes + "sms.v2.match = POST /sms\n" +
            routes + "sms.v2.limits.per.phone = json phone\n" + routes + "sms.v2.limits.total = all\n");
  const LimitRoute* route = read.find("POST", {"sms"});
  ASSERT_NE(route, nullptr);
  EXPECT_EQ(route->name, "sms.v2");
  ASSERT_EQ(route->limits.size(), 2U);
  EXPECT_EQ(route->limits.front().policy->name(), "per.phone");
  EXPECT_EQ(route->limits.front().policy->limit(), 7);
}

TEST(LimitRules, ALimitIsNotOverlookedBecauseAnotherNameBeginsWithItsOwn) {
  expectRefused(limits + "lockkeeper.limits.per.rate = 1/h\nlockkeeper.limits.per.phone.rate = 7/h\n" +
                    routes + "sms.match = POST /sms\n" + routes + "sms.limits.per = all\n" + routes +
                    "sms.limits.per.phone = json phone\n",
                "lockkeeper.http.routes.sms.limits.per is a setting");
}

std::string withRoutes(const std::vector<std::pair<std::string, std::string>>& matches) {
  std::string text = limits;
  for (const auto& [name, match] : matches) {
    text += routes + name + ".match = " + match + "\n" + routes + name + ".limits.total = all\n";
  }
  return text;
}

TEST(LimitRules, ARouteThatOthersHideIsAnError) {
  expectRefused(withRoutes({{"a", "PUT /orders/{id}"}, {"b", "PUT /orders/{order}"}}),
                "no request can match the route 'b': what it would match goes to 'a'");
  expectRefused(withRoutes({{"all", "GET /a/*"}, {"one", "GET /a"}, {"more", "GET /a/{x}/*"}}),
                "no request can match the route 'all': what it would match goes to 'more' and 'one'");
  expectRefused(withRoutes({{"b", "GET /a/*"}, {"c", "* /a"}, {"d", "* /a/{x}/*"}}), "the route 'b'");
}

TEST(LimitRules, ARouteOfWhichOthersLeaveSomethingIsNone) {
  EXPECT_NO_THROW(table(withRoutes({{"a", "PUT /orders/{id}"}, {"b", "GET /orders/{order}"}})));
  EXPECT_NO_THROW(table(withRoutes({{"a", "* /sms"}, {"b", "POST /{x}"}, {"c", "POST /*"}})));
  EXPECT_NO_THROW(table(withRoutes({{"a", "GET /a/*"}, {"b", "GET /a/{x}/*"}})));
  EXPECT_NO_THROW(table(withRoutes({{"a", "GET /a/*"}, {"b", "GET /a"}, {"c", "GET /a/{x}"}})));
  EXPECT_NO_THROW(table(withRoutes({{"a", "* /a/*"}, {"b", "GET /a"}, {"c", "GET /a/{x}/*"}})));
  EXPECT_NO_THROW(table(withRoutes({{"a", "GET /a"}, {"b", "HEAD /a"}})));
}

}  // namespace
}  // namespace lockkeeper::poco
