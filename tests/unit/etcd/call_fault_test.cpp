#include "store/call_fault.h"

#include "store/messages.h"

#include <gtest/gtest.h>

namespace lockkeeper::etcd {
namespace {

using Kind = CallFault::Kind;

std::optional<Kind> kindOf(int status, const std::string& body) {
  const auto fault = faultOf(status, parsed(body).get());
  return fault ? std::optional(fault->kind) : std::nullopt;
}

std::string error(int code, const std::string& text) {
  return R"({"error":")" + text + R"(","message":")" + text + R"(","code":)" + std::to_string(code) + "}";
}

TEST(EtcdCallFault, ToldApartByWhatMayHaveBeenDone) {
  EXPECT_EQ(kindOf(200, R"({"header":{"revision":"1"}})"), std::nullopt);
  EXPECT_EQ(kindOf(503, error(14, "etcdserver: no leader")), Kind::notApplied);
  EXPECT_EQ(kindOf(429, error(8, "etcdserver: too many requests")), Kind::notApplied);
  EXPECT_EQ(kindOf(429, error(8, "etcdserver: mvcc: database space exceeded")), Kind::unknown)
      << "the write that fills the database is applied, and answered so";
  EXPECT_EQ(kindOf(429, error(8, "grpc: received message larger than max (5000000 vs. 4194304)")),
            Kind::unknown)
      << "the reply was too large, not the request";
  EXPECT_EQ(kindOf(400, error(3, "etcdserver: request is too large")), Kind::setUp);
  EXPECT_EQ(kindOf(503, error(14, "etcdserver: request timed out")), Kind::unknown);
  EXPECT_EQ(kindOf(503, error(14, "etcdserver: leader changed")), Kind::unknown);
  EXPECT_EQ(kindOf(500, error(2, "context deadline exceeded")), Kind::unknown);
  EXPECT_EQ(kindOf(404, error(5, "etcdserver: requested lease not found")), Kind::noLease);
  EXPECT_EQ(kindOf(401, error(16, "etcdserver: invalid auth token")), Kind::logIn);
  EXPECT_EQ(kindOf(400, error(3, "etcdserver: revision of auth store is old")), Kind::logIn);
  EXPECT_EQ(kindOf(403, error(7, "etcdserver: permission denied")), Kind::setUp);
  EXPECT_EQ(kindOf(412, error(9, "etcdserver: authentication is not enabled")), Kind::setUp);
  EXPECT_EQ(kindOf(412, error(9, "etcdserver: not capable")), Kind::notApplied) << "etcd 3.6";
  EXPECT_EQ(kindOf(503, error(14, "etcdserver: not capable")), Kind::notApplied) << "etcd 3.5";
  EXPECT_EQ(kindOf(412, error(9, "etcdserver: not leader")), Kind::notApplied);
}

TEST(EtcdCallFault, KnowsTheErrorsOfStreamsAndOfLaterGateways) {
  EXPECT_EQ(kindOf(503, R"({"error":{"grpc_code":14,"http_code":503,"message":"etcdserver: no leader"}})"),
            Kind::notApplied);
  EXPECT_EQ(kindOf(503, R"({"code":14,"message":"etcdserver: no leader","details":[]})"), Kind::notApplied);
  EXPECT_EQ(kindOf(200, R"({"error":{"code":14,"message":"etcdserver: no leader"}})"), Kind::notApplied);
}

TEST(EtcdCallFault, WhatIsNoReplyOfEtcdIsNoAnswer) {
  EXPECT_EQ(kindOf(404, "404 page not found"), Kind::memberSetUp);
  EXPECT_EQ(kindOf(502, "<html>bad gateway</html>"), Kind::unknown);
  EXPECT_EQ(kindOf(200, ""), Kind::unknown);
  EXPECT_EQ(kindOf(200, "{\"a\":" + std::string(1'000'000, '[')), Kind::unknown);
  EXPECT_EQ(kindOf(200, R"({"result":{}}{"error")"), Kind::unknown);
}

TEST(EtcdCallFault, ItsTextIsOneLine) {
  const auto fault = faultOf(500, parsed(R"({"code":2,"message":"a\nb\u0000c"})").get());
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->text.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace lockkeeper::etcd
