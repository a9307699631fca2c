// The simulated etcd says what a real one says.
#include "simulation/etcd/keys.h"

#include <Poco/JSON/Array.h>
#include <Poco/JSON/Parser.h>
#include <Poco/Net/HTTPClientSession.h>
#include <Poco/Net/HTTPRequest.h>
#include <Poco/Net/HTTPResponse.h>
#include <Poco/StreamCopier.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "etcd_cluster.h"

namespace lockkeeper::simulation {
namespace {

/// Calls with random contents about a few keys and leases.
class RandomCalls {
 public:
  explicit RandomCalls(std::uint64_t seed) : random_(seed) {}

  struct Call {
    std::string path;
    std::string body;
  };

  Call next() {
    switch (upTo(11)) {
      case 0:
        return {"/v3/lease/grant",
                R"({"ID":")" + lease() + R"(","TTL":")" + oneOf({"1", "500", "600"}) + "\"}"};
      case 1:
        return {"/v3/lease/keepalive", R"({"ID":")" + lease() + "\"}"};
      case 2:
        return {"/v3/lease/revoke", R"({"ID":")" + lease() + "\"}"};
      default:
        return {"/v3/kv/txn", R"({"compare":)" + several(2, [this] { return compare(); }) + R"(,"success":)" +
                                  operations() + R"(,"failure":)" + operations() + "}"};
    }
  }

 private:
  template <class Make>
  std::string several(std::uint64_t most, Make make) {
    std::string all;
    for (std::uint64_t left = upTo(most); left > 0; --left) all += (all.empty() ? "" : ",") + make();
    return "[" + all + "]";
  }

  // Etcd refuses a transaction that changes a key twice.
  std::string operations() {
    if (upTo(1) == 0) return several(3, [this] { return range(); });
    const std::string change = upTo(2) == 0 ? removal() : put();
    return "[" + change + "," + range() + "]";
  }

  std::string put() {
    return R"({"request_put":{"key":")" + base64Of(key()) + R"(","value":")" +
           base64Of(oneOf({"v", "w", ""})) + R"(","lease":")" + oneOf({"0", "0", lease()}) + R"("}})";
  }
  std::string removal() { return R"({"request_delete_range":{"key":")" + base64Of(key()) + R"("}})"; }

  std::string keys() {
    std::string fields = R"("key":")" + base64Of(oneOf({"a", "b", "za", "zb", "c", ""})) + "\"";
    if (fields.find("\"\"") != std::string::npos)
      fields = R"("key":")" + base64Of(std::string(1, '\0')) + "\"";
    if (upTo(1) == 0)
      fields += R"(,"range_end":")" + base64Of(oneOf({"b", "c", "zz", std::string(1, '\0')})) + "\"";
    return fields;
  }

  std::string compare() {
    const std::string target = oneOf({"CREATE", "MOD", "VALUE"});
    const std::string result = target == "VALUE" ? "EQUAL" : oneOf({"EQUAL", "GREATER", "LESS"});
    const std::string wanted = target == "VALUE" ? R"("value":")" + base64Of(oneOf({"v", "w"})) + "\""
                               : target == "MOD" ? R"("mod_revision":")" + revision() + "\""
                                                 : R"("create_revision":")" + revision() + "\"";
    return R"({"target":")" + target + R"(","result":")" + result + "\"," + keys() + "," + wanted + "}";
  }

  std::string range() {
    std::string fields = keys();
    if (upTo(2) == 0)
      fields += R"(,"sort_target":"CREATE","sort_order":")" + oneOf({"ASCEND", "DESCEND"}) + "\"";
    if (upTo(2) == 0) fields += R"(,"limit":")" + oneOf({"1", "2"}) + "\"";
    if (upTo(4) == 0) fields += R"(,"max_create_revision":")" + revision() + "\"";
    if (upTo(4) == 0) fields += R"(,"min_create_revision":")" + revision() + "\"";
    if (upTo(6) == 0) fields += R"(,"count_only":true)";
    return R"({"request_range":{)" + fields + "}}";
  }

  std::uint64_t upTo(std::uint64_t bound) { return random_() % (bound + 1); }
  std::string oneOf(const std::vector<std::string>& all) { return all[upTo(all.size() - 1)]; }
  std::string key() { return oneOf({"a", "b", "za", "zb"}); }
  std::string lease() { return oneOf({"11", "12", "13"}); }
  std::string revision() { return std::to_string(upTo(3) == 0 ? 0 : upTo(400)); }

  std::mt19937_64 random_;
};

/// A real etcd of one member, asked on one connection.
class RealEtcd {
 public:
  std::string call(const std::string& path, const std::string& body) {
    Poco::Net::HTTPRequest request("POST", path, "HTTP/1.1");
    request.setContentLength(static_cast<std::streamsize>(body.size()));
    session_.sendRequest(request) << body;
    Poco::Net::HTTPResponse response;
    std::string answer;
    Poco::StreamCopier::copyToString(session_.receiveResponse(response), answer);
    return answer;
  }

 private:
  const test::EtcdCluster cluster_{{.nodes = 1}};
  Poco::Net::HTTPClientSession session_{"127.0.0.1", cluster_.port(0)};
};

// Without what differs from cluster to cluster, and the words of errors beside their code.
std::string comparable(const std::string& text) {
  auto body = Poco::JSON::Parser().parse(text).extract<Poco::JSON::Object::Ptr>();
  if (body->has("code"))
    return "error " + body->getValue<std::string>("code") + ": " + body->getValue<std::string>("error");
  const std::function<void(Poco::JSON::Object&)> clear = [&](Poco::JSON::Object& object) {
    for (const char* name : {"cluster_id", "member_id", "raft_term"}) object.remove(name);
    for (const std::string& name : object.getNames()) {
      if (auto inner = object.getObject(name)) clear(*inner);
      const auto items = object.getArray(name);
      for (unsigned i = 0; items && i < items->size(); ++i) clear(*items->getObject(i));
    }
  };
  clear(*body);
  std::ostringstream out;
  body->stringify(out);
  return out.str();
}

TEST(SameAsEtcd, InEachCall) {
  RealEtcd real;
  EtcdKeys simulated([] { return std::int64_t{0}; }, [](const auto&) {});
  RandomCalls calls(20261128);
  std::map<std::string, int> kinds;
  for (int i = 0; i < 3000; ++i) {
    const auto [path, body] = calls.next();
    std::string said;
    try {
      said = simulated.call(path, *Poco::JSON::Parser().parse(body).extract<Poco::JSON::Object::Ptr>());
    } catch (const EtcdRefusal& refusal) {
      said = R"({"code":)" + std::to_string(refusal.code()) + R"(,"error":")" + refusal.what() + "\"}";
    }
    ++kinds[path + comparable(said).substr(0, 8)];
    ASSERT_EQ(comparable(said), comparable(real.call(path, body))) << "call " << i << ": " << path << body;
  }
  EXPECT_GE(kinds.size(), 5U);
}

}  // namespace
}  // namespace lockkeeper::simulation
