#include "http/route/key_source.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "fake_request.h"
#include "http/route/request_path.h"
#include "lockkeeper/error.h"

namespace lockkeeper::poco {
namespace {

const std::string none = "#none";

class KeySourceTest : public ::testing::Test {
 protected:
  std::string key(const std::string& source, const FakeRequest& request, const std::string& body = "") const {
    const auto path = pathSegments(request.getURI()).value();
    const RequestFacts facts{request, path, address_, user_, parseJson(body)};
    return KeySource::parse("limit", source, pattern_, user_).keyFor(facts);
  }
  std::string jsonKey(const std::string& body) const {
    return key("json phone", FakeRequest("POST", "/"), body);
  }

  UserOf user_ = [](const Poco::Net::HTTPServerRequest& request) { return request.get("Authorization", ""); };

 private:
  const ClientAddress address_{{}};
  const RoutePattern pattern_ = RoutePattern::parse("match", "POST /orders/{id}/*");
};

TEST_F(KeySourceTest, FindsTheValueWhereverItIs) {
  FakeRequest request("POST", "/orders/a%20b/items?tenant=north+east&x=1&tenant=other", "192.0.2.9");
  request.set("Authorization", "ann");
  EXPECT_EQ(key("address", request), "192.0.2.9");
  EXPECT_EQ(key("user", request), "ann");
  EXPECT_EQ(key("query tenant", request), "north east");
  EXPECT_EQ(key("path id", request), "a b");
  EXPECT_EQ(key("all", request), "#all");
}

TEST_F(KeySourceTest, HashesWhatMayBeACredential) {
  FakeRequest request("POST", "/");
  request.set("X-Api-Key", "secret");
  request.set("Cookie", "theme=dark; session=s-1");
  // printf VALUE | sha256sum
  EXPECT_EQ(key("header X-Api-Key", request), "#2bb80d537b1da3e38bd30361aa855686");
  EXPECT_EQ(key("header x-api-key", request), "#2bb80d537b1da3e38bd30361aa855686");
  EXPECT_EQ(key("cookie session", request), "#6a840baf5d8c3ff241688aeb14546e65");
}

TEST_F(KeySourceTest, TheConfigurationSaysWhatIsASecretAndWhatIsNot) {
  FakeRequest request("POST", "/orders/secret/items?api_key=secret");
  request.set("X-Tenant", " North ");
  request.set("Cookie", "region=north");
  EXPECT_EQ(key("header X-Tenant | trim | lower | plain", request), "north");
  EXPECT_EQ(key("cookie region|plain", request), "north");
  for (const char* source : {"query api_key | hash", "path id | hash"}) {
    EXPECT_EQ(key(source, request), "#2bb80d537b1da3e38bd30361aa855686") << source;
  }
  EXPECT_EQ(key("json key | hash", request, R"({"key":"secret"})"), "#2bb80d537b1da3e38bd30361aa855686");
  EXPECT_EQ(key("header X-Shop | plain", request), none);
}

TEST_F(KeySourceTest, ReadsAFieldOfTheJsonBody) {
  EXPECT_EQ(jsonKey(R"({"text":"hi","phone":"+4930"})"), "+4930");
  EXPECT_EQ(jsonKey(R"({"phone":4930})"), jsonKey(R"({"phone":"4930"})"));
  for (const char* body : {"", "{", "[]", "7", R"({"Phone":"+4930"})", R"({"phone":null})",
                           R"({"phone":["a"]})", R"({"phone":true})", R"({"phone":{"a":1}})"}) {
    EXPECT_EQ(jsonKey(body), none) << body;
  }
  EXPECT_EQ(jsonKey(std::string(100000, '[')), none);
}

TEST_F(KeySourceTest, AHandlerMustReadTheSameValue) {
  const auto isClear = [&](const std::string& body, const std::string& source = "json phone") {
    const FakeRequest request("POST", "/");
    const auto path = pathSegments(request.getURI()).value();
    const ClientAddress address({});
    const RequestFacts facts{request, path, address, user_, parseJson(body)};
    return KeySource::parse("limit", source, RoutePattern::parse("match", "POST /"), user_).isClear(facts);
  };
  for (const char* body :
       {"", "{", "[]", R"({"phone":49170})", R"({"phone":-1})", R"({"phone":"1.5"})", R"({"phone":true})",
        R"({"phone":null})", R"({"price":1.5,"phone":"+491"})", R"({"phone":18446744073709551615})",
        R"({"a":{"phone":1},"b":{"phone":2},"phone":3})", R"({"a":[{"x":1},{"x":2}],"phone":3})",
        R"({"phone":1,"Phone":2})"}) {
    EXPECT_TRUE(isClear(body)) << body;
  }
  for (const char* body :
       {R"({"phone":49170.00001})", R"({"phone":49170.0})", R"({"phone":4.917e4})", R"({"phone":49170e0})",
        R"({"phone":1E3})", R"({"phone":"+491","phone":"+492"})", R"({"phone":"+491","ph\u006fne":"+492"})",
        R"({"phone":"+491","a":1,"a":2})", R"({"a":{},"a":[],"phone":1})"}) {
    EXPECT_FALSE(isClear(body)) << body;
    EXPECT_TRUE(isClear(body, "address")) << body;
  }
}

TEST_F(KeySourceTest, BringsAllSpellingsIntoOne) {
  const FakeRequest request("POST", "/?name=%20Ann%20");
  EXPECT_EQ(key("query name | trim | lower", request), "ann");
  EXPECT_EQ(key("query name|lower", request), " ann ");
  const auto phone = [&](const std::string& written) {
    return key("json phone | e164", request, R"({"phone":")" + written + R"("})");
  };
  for (const char* spelling : {"+4930123456", "+49 30 123-456", "0049 (30) 12.34/56", " +49 30 123456 "}) {
    EXPECT_EQ(phone(spelling), "+4930123456") << spelling;
  }
  for (const char* other : {"", "030123456", "+030123456", "+4", "+4930123456789012", "+4930123456x",
                            "++4930123456", "49+30123456", "+49 30 123456 ext 7", "00030123456"}) {
    EXPECT_EQ(phone(other), none) << other << " is no number: it counts as missing";
  }
}

TEST_F(KeySourceTest, RefusesAFormThatItDoesNotKnow) {
  const auto refusal = [&](const char* source) -> std::string {
    try {
      (void)key(source, FakeRequest("POST", "/"));
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  const std::string allowed = " after |: trim, lower and e164 are allowed, and plain or hash at the end";
  EXPECT_EQ(refusal("json phone | upper"), "limit has 'upper'" + allowed);
  EXPECT_EQ(refusal("json phone |"), "limit has ''" + allowed);
  EXPECT_EQ(refusal("json phone | hash | lower"), "limit has 'hash'" + allowed);
  EXPECT_EQ(refusal("json phone | plain | hash"), "limit has 'plain'" + allowed);
  EXPECT_EQ(refusal("address | lower"),
            "limit is 'address | lower': only header, cookie, query, json and path "
            "have a value to bring into another form");
}

TEST_F(KeySourceTest, NobodyEscapesByLeavingTheValueOut) {
  const FakeRequest request("POST", "/");
  for (const char* source : {"header X-Api-Key", "cookie session", "query tenant", "json phone"}) {
    EXPECT_EQ(key(source, request), none) << source;
  }
  EXPECT_EQ(key("query tenant", FakeRequest("POST", "/?tenant=%zz")), none);
}

TEST_F(KeySourceTest, HashesWhatIsLongOrCouldPassForSomethingElse) {
  const auto phoneKey = [&](const std::string& value) { return jsonKey(R"({"phone":")" + value + R"("})"); };
  EXPECT_EQ(phoneKey(std::string(64, 'a')), std::string(64, 'a'));
  const std::string hashed = phoneKey(std::string(100000, 'a'));
  EXPECT_EQ(hashed.size(), 33U);
  EXPECT_NE(hashed, phoneKey(std::string(100001, 'a')));
  for (const char* value : {"#none", "#all", "a:lockkeeper:b", ""}) {
    EXPECT_EQ(phoneKey(value).size(), 33U) << value;
    EXPECT_EQ(phoneKey(value).front(), '#') << value;
  }
  EXPECT_EQ(phoneKey(hashed).size(), 33U);
  EXPECT_NE(phoneKey(hashed), hashed);
  FakeRequest request("POST", "/");
  request.set("X-Tenant", "#none");
  EXPECT_EQ(key("header X-Tenant | plain", request).size(), 33U);
}

TEST_F(KeySourceTest, RefusesWhatItDoesNotKnow) {
  for (const char* source : {"", "ip", "address X", "header", "header ", "json", "path shop", "body phone"}) {
    EXPECT_THROW(key(source, FakeRequest("POST", "/")), std::invalid_argument) << source;
  }
  user_ = nullptr;
  EXPECT_THROW(key("user", FakeRequest("POST", "/")), std::invalid_argument);
}

}  // namespace
}  // namespace lockkeeper::poco
