#include <tuple>

#include "lockkeeper/driver/driver.h"
#include "operation.h"
#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

struct Store {
  const char* scheme;
  const char* query;
  std::optional<Share> share{};

  Claimant claimant() const {
    Claimant who;
    who.share = share;
    return who;
  }
};

void PrintTo(const Store& store, std::ostream* out) { *out << store.scheme << " " << store.query; }

/// Every reply is cut after each of its bytes: no cut may pass for an answer.
class CutReplies : public RedisFaultTest,
                   public ::testing::WithParamInterface<std::tuple<Operation, Ending, Store>> {};

std::string cutName(const ::testing::TestParamInfo<CutReplies::ParamType>& info) {
  const auto& [operation, ending, store] = info.param;
  return std::string(operation.name) + (ending == Ending::fin ? "ByFin" : "ByReset");
}

TEST_P(CutReplies, AreNeverTakenForAnswers) {
  const auto& [operation, ending, store] = GetParam();
  const auto driver = openRedis(proxy.port(), store.query, store.scheme);
  const auto undisturbed = openRedis(server.port(), store.query, store.scheme);
  const std::string unknown = std::string("error: ") + toString(ErrorCode::outcomeUnknown);
  {
    const Claimant who = store.claimant();  // Once without a fault, so that the server knows the scripts.
    operation.prepare(*undisturbed, who);
    ASSERT_EQ(attempt(operation, *driver, who, soon()).find("error"), std::string::npos);
  }
  constexpr std::size_t longestReply = 2000;
  std::size_t cuts = 0;
  for (std::size_t bytes = 0; bytes < longestReply; ++bytes) {
    SCOPED_TRACE("cut after " + std::to_string(bytes) + " bytes");
    const Claimant who = store.claimant();
    operation.prepare(*undisturbed, who);
    ASSERT_NO_THROW((void)driver->holder("connects again", soon()));
    proxy.cutReplies(bytes, ending);
    const std::string said = attempt(operation, *driver, who, soon());
    if (proxy.fired() == 0) {
      EXPECT_EQ(said, operation.expected(*undisturbed, who));
      EXPECT_EQ(proxy.replyBytes(), bytes);
      EXPECT_EQ(cuts, bytes) << "every cut must have hit";
      EXPECT_GT(cuts, 3U);
      return;
    }
    ++cuts;
    if (operation.changesTheStore) {
      ASSERT_EQ(said, unknown) << "the server has done it";
    } else {
      ASSERT_EQ(said.find("error: "), 0U) << said;
    }
  }
  FAIL() << "the reply never passed whole";
}

INSTANTIATE_TEST_SUITE_P(Fences, CutReplies,
                         ::testing::Combine(::testing::ValuesIn(operations()),
                                            ::testing::Values(Ending::fin, Ending::rst),
                                            ::testing::Values(Store{"redis", "fence=on"})),
                         cutName);
INSTANTIATE_TEST_SUITE_P(
    Shares, CutReplies,
    ::testing::Combine(::testing::Values(operations()[0], operations()[1], operations()[2], operations()[4],
                                         operations()[5], operations()[6], operations()[9]),
                       ::testing::Values(Ending::fin, Ending::rst),
                       ::testing::Values(Store{"redis", "fence=on", Share{2, 5}})),
    cutName);
INSTANTIATE_TEST_SUITE_P(NoFences, CutReplies,
                         ::testing::Combine(::testing::Values(operations()[0], operations()[1]),
                                            ::testing::Values(Ending::fin, Ending::rst),
                                            ::testing::Values(Store{"redis", "fence=off"})),
                         cutName);
INSTANTIATE_TEST_SUITE_P(Legacy, CutReplies,
                         ::testing::Combine(::testing::ValuesIn(operations()),
                                            ::testing::Values(Ending::fin, Ending::rst),
                                            ::testing::Values(Store{"redis+legacy", "pure=false"})),
                         cutName);
INSTANTIATE_TEST_SUITE_P(PureLegacy, CutReplies,
                         ::testing::Combine(::testing::Values(operations()[0], operations()[2],
                                                              operations()[4]),
                                            ::testing::Values(Ending::fin, Ending::rst),
                                            ::testing::Values(Store{"redis+legacy", "pure=true"})),
                         cutName);

using ResolvedDoubt = RedisFaultTest;

TEST_F(ResolvedDoubt, ResendingAfterALostReplyGivesTheGrantThatWasMade) {
  for (const char* query : {"fence=on", "fence=off"}) {
    const auto driver = openProxied(query);
    ASSERT_TRUE(granted(driver->acquire(Claimant{}.request()))) << "connects, and loads the script";
    const Claimant who{};
    proxy.cutReplies(1, Ending::fin);
    EXPECT_THROW((void)driver->acquire(who.request()), OutcomeUnknown);
    EXPECT_EQ(proxy.fired(), 1U);
    const auto fence = direct->holder(who.key, soon())->fence;
    const AcquireResult again = driver->acquire(who.request(soon(), true));
    ASSERT_TRUE(granted(again));
    if (std::string(query) == "fence=on") {
      EXPECT_EQ(std::get<Granted>(again).fence, fence);
    }
    EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
    EXPECT_TRUE(isFree(who.key));
  }
}

/// The greeting (log-in, checks, first script) is cut after each of its bytes.
class CutGreeting : public RedisFaultTest, public ::testing::WithParamInterface<Ending> {};

TEST_P(CutGreeting, YieldsNoGrantAndClaimsNothingThatIsNotSo) {
  constexpr std::size_t longestGreeting = 20000;
  std::size_t cuts = 0;
  for (std::size_t bytes = 0; bytes < longestGreeting; ++bytes) {
    const auto driver = openProxied();
    const Claimant who{};
    proxy.cutReplies(bytes, GetParam());
    try {
      const AcquireResult result = driver->acquire(who.request());
      ASSERT_EQ(proxy.fired(), 0U) << "a grant after a cut behind " << bytes << " bytes";
      EXPECT_TRUE(granted(result));
      EXPECT_EQ(cuts, bytes) << "every cut must have hit";
      EXPECT_GT(cuts, 1000U) << "the greeting holds the server's INFO";
      return;
    } catch (const StoreUnavailable&) {
      ASSERT_FALSE(direct->holder(who.key, soon())) << "the driver said that nothing was done";
    } catch (const OutcomeUnknown&) {
    }
    ASSERT_EQ(proxy.fired(), 1U);
    ++cuts;
  }
  FAIL() << "the greeting never passed whole";
}

INSTANTIATE_TEST_SUITE_P(Endings, CutGreeting, ::testing::Values(Ending::fin, Ending::rst));

}  // namespace
}  // namespace lockkeeper::test
