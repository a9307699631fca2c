#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "cut_greeting.h"
#include "operation.h"
#include "version_fixture.h"

namespace lockkeeper::test {
namespace {

/// Replies are cut again and again, each time a little later: no cut may pass for an answer.
class CutVersionReplies : public ::testing::TestWithParam<std::tuple<Brand, Operation>> {
 protected:
  /// `beside`: another one has a share of the key, too.
  void cutAgainAndAgain(const std::optional<Share>& share, std::size_t step, bool beside = false);

  VersionStore store{std::get<Brand>(GetParam())};
};

void CutVersionReplies::cutAgainAndAgain(const std::optional<Share>& share, std::size_t step, bool beside) {
  const Operation& operation = std::get<Operation>(GetParam());
  const auto driver = store.openProxied();
  const std::string unknown = std::string("error: ") + toString(ErrorCode::outcomeUnknown);
  const std::string unavailable = std::string("error: ") + toString(ErrorCode::storeUnavailable);
  // A renewal of a share first finds out where the share is.
  bool looks = share && std::string_view(operation.name).starts_with("Renew");
  constexpr std::size_t longestReply = 2000;
  if (share) {
    // Makes the table, clears it once, and prepares the statements.
    Claimant first;
    first.share = share;
    ASSERT_TRUE(granted(driver->acquire(first.request())));
    ASSERT_EQ(driver->release(first.claim(), soon()), ReleaseOutcome::released);
  }
  std::size_t cuts = 0;
  for (std::size_t bytes = 0; bytes < longestReply; bytes += step) {
    SCOPED_TRACE("cut after " + std::to_string(bytes) + " bytes");
    Claimant who;
    who.share = share;
    if (beside) {
      Claimant other;
      other.key = who.key;
      other.share = share;
      ASSERT_TRUE(granted(store.direct->acquire(other.request())));
    }
    operation.prepare(*store.direct, who);
    ASSERT_NO_THROW((void)driver->holder("connects again", soon()));
    store.proxy.cutReplies(bytes, cuts % 2 == 0 ? Ending::fin : Ending::rst);
    const std::string said = attempt(operation, *driver, who, soon());
    if (store.proxy.fired() == 0) {
      EXPECT_EQ(said, operation.expected(*store.direct, who));
      EXPECT_EQ(cuts * step, bytes) << "every cut must have hit";
      EXPECT_GT(cuts, 3U);
      EXPECT_FALSE(looks) << "the renewal itself was not cut";
      return;
    }
    ++cuts;
    looks = looks && said == unavailable;
    if (operation.changesTheStore && !looks) {
      ASSERT_EQ(said, unknown) << "the server may have done it";
    } else {
      ASSERT_EQ(said.find("error: "), 0U) << said;
    }
  }
  FAIL() << "the reply never passed whole";
}

TEST_P(CutVersionReplies, AreNeverTakenForAnswers) { cutAgainAndAgain({}, 1); }

TEST_P(CutVersionReplies, OfSharesAreNeverTakenForAnswers) { cutAgainAndAgain(Share{1, 2}, 5); }

/// Several results each, of which any may be the last one that arrives.
class CutRepliesOfSeveralShares : public CutVersionReplies {
 public:
  /// Those that somebody else's share leaves possible.
  static std::vector<Operation> possible() {
    const std::set<std::string> names{"AcquireFree",  "RenewHeld", "ReleaseHeld",
                                      "HolderOfHeld", "List",      "Break"};
    std::vector<Operation> found;
    std::copy_if(operations().begin(), operations().end(), std::back_inserter(found),
                 [&](const Operation& each) { return names.contains(each.name); });
    EXPECT_EQ(found.size(), names.size());
    return found;
  }
};

TEST_P(CutRepliesOfSeveralShares, AreNeverTakenForAnswers) { cutAgainAndAgain(Share{1, 2}, 5, true); }

std::string nameOfTest(const ::testing::TestParamInfo<CutVersionReplies::ParamType>& each) {
  return std::string(nameOf(std::get<Brand>(each.param))) + std::get<Operation>(each.param).name;
}

INSTANTIATE_TEST_SUITE_P(Operations, CutVersionReplies,
                         ::testing::Combine(::testing::ValuesIn(allBrands),
                                            ::testing::ValuesIn(operations())),
                         nameOfTest);
INSTANTIATE_TEST_SUITE_P(Operations, CutRepliesOfSeveralShares,
                         ::testing::Combine(::testing::ValuesIn(allBrands),
                                            ::testing::ValuesIn(CutRepliesOfSeveralShares::possible())),
                         nameOfTest);

/// What comes instead of a reply is not what a server of this protocol sends.
class GarbledVersionReply : public VersionTest {};

TEST_P(GarbledVersionReply, IsNoGrantAndCostsTheConnection) {
  const auto driver = store.openProxied("ioTimeout=1s");
  for (const std::string& garbage :
       {std::string("HTTP/1.1 400 Bad Request\r\n\r\n"), std::string("\x03\0\0\x01\xfe\xfe\xfe", 7)}) {
    const Claimant who{};
    ASSERT_NO_THROW((void)driver->holder("connects again", soon()));
    store.proxy.set({.kind = ProxyFault::Kind::replace, .text = garbage});
    EXPECT_THROW((void)driver->acquire(who.request(in(std::chrono::seconds{1}))), OutcomeUnknown)
        << ::testing::PrintToString(garbage);
    EXPECT_EQ(store.proxy.fired(), 1U);
    AcquireRequest again = who.request();
    again.resend = true;
    EXPECT_TRUE(granted(driver->acquire(again)));
  }
}

INSTANTIATE_TEST_SUITE_P(Brands, GarbledVersionReply, ::testing::ValuesIn(allBrands), brandName);

/// The log-in, the checks and the making of the table are cut.
class CutVersionGreeting : public VersionTest {};

TEST_P(CutVersionGreeting, YieldsNoGrantAndClaimsNothingThatIsNotSo) { cutGreetings(store); }

TEST_P(CutVersionGreeting, ResendingAfterALostReplyGivesTheGrantThatWasMade) {
  const auto driver = store.openProxied();
  ASSERT_TRUE(granted(driver->acquire(Claimant{}.request()))) << "connects, and prepares the statement";
  const Claimant who{};
  store.proxy.cutReplies(1, Ending::fin);
  EXPECT_THROW((void)driver->acquire(who.request()), OutcomeUnknown);
  EXPECT_EQ(store.proxy.fired(), 1U);
  const auto held = store.direct->holder(who.key, soon());
  ASSERT_TRUE(held) << "only the reply was lost";
  const AcquireResult again = driver->acquire(who.request(soon(), true));
  ASSERT_TRUE(granted(again));
  EXPECT_EQ(std::get<Granted>(again).fence, held->fence);
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
  EXPECT_TRUE(store.isFree(who.key));
}

INSTANTIATE_TEST_SUITE_P(Brands, CutVersionGreeting, ::testing::ValuesIn(allBrands), brandName);

}  // namespace
}  // namespace lockkeeper::test
