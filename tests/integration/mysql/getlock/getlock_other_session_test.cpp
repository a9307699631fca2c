// Something between us and the server (a pooling proxy, a client library that reconnects) answers from
// another session than the one that holds our locks.

#include "getlock_fixture.h"

namespace lockkeeper::test {
namespace {

std::string packet(std::size_t number, const std::string& payload) {
  std::string header{static_cast<char>(payload.size()), '\0', '\0', static_cast<char>(number)};
  return header + payload;
}

std::string counted(const std::string& text) { return std::string(1, static_cast<char>(text.size())) + text; }

/// One row in the text protocol
/// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response_text_resultset.html).
std::string row(Brand brand, const std::vector<std::string>& fields) {
  const std::string end("\xfe\x00\x00\x02\x00", 5);
  std::string column = counted("def") + counted("") + counted("") + counted("") + counted("a") + counted("");
  if (brand == Brand::mariadb) column += counted("");  // its extended metadata
  column += std::string("\x0c\x3f\x00\x14\x00\x00\x00\x08\x00\x00\x00\x00\x00", 13);
  std::size_t number = 1;
  std::string all = packet(number++, std::string(1, static_cast<char>(fields.size())));
  for (std::size_t i = 0; i < fields.size(); ++i) all += packet(number++, column);
  all += packet(number++, end);
  std::string values;
  for (const std::string& field : fields) values += counted(field);
  all += packet(number++, values);
  return all + packet(number, end);
}

class GetLockOtherSession : public GetLockTest {
 protected:
  void answer(const std::vector<std::string>& fields) {
    store.proxy.set({.kind = ProxyFault::Kind::replace, .text = row(GetParam(), fields)});
  }

  const std::shared_ptr<LockDriver> driver = store.openProxied("fence=off");
  const Claimant who{};
};

TEST_P(GetLockOtherSession, IsALossForWhoHolds) {
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  const std::string session = store.ask("SELECT IS_USED_LOCK('" + who.key + "')");
  answer({session});
  EXPECT_EQ(renew(*driver, who), RenewOutcome::renewed) << "the right session is no loss";
  EXPECT_EQ(store.proxy.fired(), 1U);
  store.proxy.endConnections(Ending::rst);

  ASSERT_TRUE(waitUntil([&] { return store.isFree(who.key); }));
  ASSERT_TRUE(granted(driver->acquire(who.request(soon(), true))));
  answer({std::to_string(std::stoull(store.ask("SELECT IS_USED_LOCK('" + who.key + "')")) + 1)});
  EXPECT_EQ(renew(*driver, who), RenewOutcome::notOwner);
  EXPECT_EQ(store.proxy.fired(), 1U);
  EXPECT_TRUE(waitUntil([&] { return store.isFree(who.key); })) << "the session is closed";
}

TEST_P(GetLockOtherSession, IsNoGrant) {
  (void)driver->holder(who.key, soon());
  answer({"1", "4242424242"});
  EXPECT_THROW((void)driver->acquire(who.request()), OutcomeUnknown);
  EXPECT_EQ(store.proxy.fired(), 1U);
  EXPECT_TRUE(waitUntil([&] { return store.isFree(who.key); }));
}

INSTANTIATE_TEST_SUITE_P(Brands, GetLockOtherSession, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test
