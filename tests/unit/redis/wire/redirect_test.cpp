#include "wire/protocol/redirect.h"

#include <gtest/gtest.h>

#include "error_reply.h"
#include "wire/protocol/request.h"
#include "wire/protocol/server_error.h"

namespace lockkeeper::redis {
namespace {

TEST(Redirect, NamesTheNodeThatHasTheSlot) {
  const auto moved = redirectIn(errorReply("MOVED 3999 127.0.0.1:6381"));
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->kind, Redirect::Kind::moved);
  EXPECT_EQ(moved->to, (NodeAddress{"127.0.0.1", 6381}));
  EXPECT_EQ(redirectIn(errorReply("MOVED 3999 fd00::1:6381"))->to, (NodeAddress{"fd00::1", 6381}));
  EXPECT_EQ(redirectIn(errorReply("MOVED 3999 :6381"))->to, (NodeAddress{"", 6381}))
      << "that of the node asked";
  const auto ask = redirectIn(errorReply("ASK 3999 r2.internal:6379"));
  ASSERT_TRUE(ask);
  EXPECT_EQ(ask->kind, Redirect::Kind::ask);
  EXPECT_EQ(ask->to.text(), "r2.internal:6379");
  EXPECT_EQ(redirectIn(errorReply("TRYAGAIN Multiple keys"))->kind, Redirect::Kind::tryAgain);
  EXPECT_EQ(redirectIn(errorReply("CLUSTERDOWN The cluster is down"))->kind, Redirect::Kind::down);
}

TEST(Redirect, IsNoneWhereNoNodeIsNamed) {
  for (const char* const text :
       {"MOVED", "MOVED 1", "MOVED 1 ", "MOVED 1 host", "MOVED 1 host:0", "MOVED 1 host:65536",
        "MOVED 1 ?:6379", "ASK 1 host:x", "ERR MOVED 1 host:1", "OOM"}) {
    EXPECT_FALSE(redirectIn(errorReply(text))) << text;
  }
  EXPECT_FALSE(redirectIn({.kind = ReplyKind::bulk, .integer = 0, .text = "MOVED 1 host:1", .items = {}}));
  // Nothing was done all the same.
  EXPECT_EQ(faultOf("s", errorReply("MOVED 1 ?:6379")).code, ErrorCode::storeUnavailable);
}

TEST(Redirect, SaysWhatItMeansAndRepeatsNoAddressOfTheServers) {
  const ServerFault fault = faultOf("the store", errorReply("CLUSTERDOWN Hash slot not served"));
  EXPECT_EQ(fault.code, ErrorCode::storeUnavailable);
  EXPECT_EQ(fault.text.find("the store: the cluster is down (CLUSTERDOWN)"), 0U) << fault.text;
}

TEST(Asking, StandsBeforeEachCommandWhateverItsBytes) {
  Request request;
  request.add({"GET", "a\r\n*1\r\n$3"});
  request.add({"DEL", ""});
  const std::string first = request.commands();
  request.addAsking();
  EXPECT_EQ(request.size(), 4U);
  const std::string asking = "*1\r\n$6\r\nASKING\r\n";
  const std::size_t second = first.find("*2\r\n$3\r\nDEL");
  EXPECT_EQ(request.commands(), asking + first.substr(0, second) + asking + first.substr(second));
}

}  // namespace
}  // namespace lockkeeper::redis
