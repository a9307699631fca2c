// Replies that are longer than any of ours: who sends them may not be the server.

#include <memory>
#include <string>

#include "getlock_fixture.h"
#include "hosts/session_opener.h"

namespace lockkeeper::test {
namespace {

class ReplySize : public ::testing::TestWithParam<Brand> {
 protected:
  std::unique_ptr<mysql::ServerSession> session() { return opener_.open(soon()); }

  static std::string rowOf(std::size_t bytes) { return "SELECT REPEAT('x'," + std::to_string(bytes) + ")"; }

 private:
  DatabaseServer& server_ = []() -> DatabaseServer& {
    // It would itself refuse to send what is above its own limit.
    serverOf(GetParam()).execute("SET GLOBAL max_allowed_packet = 1073741824");
    return serverOf(GetParam());
  }();
  mysql::SessionOpener opener_{
      mysql::ServerOptions::fromUri(StoreUri::parse(server_.uri(server_.newDatabase()))), {}, {}};
};

TEST_P(ReplySize, ARowMayBeAsLongAsAReply) {
  const auto session = this->session();
  const mysql::Reply& whole = session->query(rowOf(mysql::longestReply - 1024), soon());
  ASSERT_EQ(whole.error, 0U) << whole.reason;
  EXPECT_EQ(whole.text(0).size(), mysql::longestReply - 1024);
  EXPECT_EQ(session->query("SELECT 7", soon()).number(0), 7U);
  const mysql::Reply& tooLong = session->query(rowOf(mysql::longestReply), soon());
  EXPECT_TRUE(tooLong.lost()) << tooLong.error;
  EXPECT_EQ(tooLong.reason.find("longer than"), std::string::npos) << "it was read before it was refused";
}

TEST_P(ReplySize, AllRowsTogetherMayBeNoLonger) {
  const auto session = this->session();
  const std::string third = rowOf(mysql::longestReply / 3 + 1);
  const mysql::Reply& whole = session->query(third + " UNION ALL " + third, soon());
  ASSERT_EQ(whole.error, 0U) << whole.reason;
  EXPECT_EQ(whole.rows.size(), 2U);
  const mysql::Reply& tooLong = session->query(third + " UNION ALL " + third + " UNION ALL " + third, soon());
  EXPECT_TRUE(tooLong.lost()) << tooLong.error;
  EXPECT_NE(tooLong.reason.find("longer than"), std::string::npos) << tooLong.reason;
}

INSTANTIATE_TEST_SUITE_P(Brands, ReplySize, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test
