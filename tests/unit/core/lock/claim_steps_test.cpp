// What a claim does next, in every order of what the store may answer. No threads, no clock.

#include "lock/claim_steps.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace lockkeeper::detail {
namespace {

using Step = ClaimSteps::Step;
using Failure = ClaimSteps::Failure;

/// What a store may have of the tokens of one claim, which are numbers here.
class ClaimStore final : public ClaimSteps::Tokens {
 public:
  void replace() override {
    EXPECT_FALSE(mayHavePresent()) << "nobody would release it";
    ++present_;
  }
  void withdraw() noexcept override {
    EXPECT_TRUE(sent_.contains(present_)) << "there is nothing to withdraw";
    granted_.erase(present_);
    queued_.erase(present_);
    withdrawn_.insert(present_);
  }

  /// As far as the caller can tell.
  bool mayHavePresent() const { return granted_.contains(present_) || queued_.contains(present_); }
  bool isWithdrawn() const { return withdrawn_.contains(present_); }
  void send() { sent_.insert(present_); }
  void mayHaveGranted() { granted_.insert(present_); }
  void mayHaveQueued() { queued_.insert(present_); }
  void isBusy() { granted_.erase(present_); }
  void hasLeftQueue() { queued_.erase(present_); }

 private:
  int present_ = 0;
  std::set<int> sent_, granted_, queued_, withdrawn_;
};

enum class Answer { granted, tooLate, busy, unavailable, unknown, withdrawn, refused, broken };
constexpr int answers = 8;
constexpr ClaimSteps::Time times[] = {{.forMore = true, .forDoubt = true},     // enough
                                      {.forMore = false, .forDoubt = true},    // the wait is over
                                      {.forMore = false, .forDoubt = false}};  // stopped
constexpr int branches = answers * 3;

void answer(ClaimSteps& steps, ClaimStore& store, Answer what, ClaimSteps::Time left) {
  const bool waits = steps.next() == Step::wait;
  switch (what) {
    case Answer::granted:
      return steps.granted();
    case Answer::tooLate:
      store.mayHaveGranted();
      return steps.grantedTooLate(left);
    case Answer::busy:
      store.isBusy();
      if (waits) store.hasLeftQueue();
      return steps.busy(left);
    case Answer::unavailable:
      return steps.failed(Failure::unavailable, left);
    case Answer::unknown:
      store.mayHaveGranted();
      if (waits) store.mayHaveQueued();
      return steps.failed(Failure::unknown, left);
    case Answer::withdrawn:
      store.mayHaveGranted();
      return steps.failed(Failure::withdrawn, left);
    case Answer::refused:
      return steps.failed(Failure::refused, left);
    case Answer::broken:
      store.mayHaveGranted();
      return steps.failed(Failure::broken, left);
  }
}

/// Plays one branch after the other, each from the beginning.
class ClaimGame {
 public:
  ClaimGame(bool storeQueues, bool waitFirst) : storeQueues_(storeQueues), waitFirst_(waitFirst) {}

  void playFrom(std::vector<int>& path, std::size_t longest) {
    for (int branch = 0; branch < branches; ++branch) {
      path.push_back(branch);
      const Step reached = play(path);
      if (::testing::Test::HasFailure()) return;
      if (reached != Step::granted && reached != Step::ended && path.size() < longest)
        playFrom(path, longest);
      path.pop_back();
    }
  }

 private:
  Step play(const std::vector<int>& path) {
    ClaimStore store;
    ClaimSteps steps(store, storeQueues_, waitFirst_);
    bool isOver = false;
    for (const int branch : path) {
      const Answer what{branch % answers};
      const ClaimSteps::Time left = times[branch / answers];
      EXPECT_TRUE(steps.next() == Step::ask || (storeQueues_ && steps.next() == Step::wait));
      EXPECT_EQ(steps.isResend(), store.mayHavePresent());
      EXPECT_FALSE(store.isWithdrawn()) << "the withdrawal may come late";
      store.send();
      answer(steps, store, what, left);
      EXPECT_EQ(steps.next() == Step::granted, what == Answer::granted);
      const bool mustEnd = what == Answer::refused || what == Answer::broken ||
                           (!left.forMore && (isOver || !left.forDoubt) && what != Answer::granted);
      EXPECT_TRUE(!mustEnd || steps.next() == Step::ended) << "a doubt is asked about once";
      isOver = !left.forMore;
      if (steps.next() == Step::pause) {
        EXPECT_TRUE(left.forMore);
        steps.resume();
      }
    }
    EXPECT_FALSE(steps.next() == Step::ended && store.mayHavePresent());
    if (::testing::Test::HasFailure()) ADD_FAILURE() << "after " << ::testing::PrintToString(path);
    return steps.next();
  }

  const bool storeQueues_, waitFirst_;
};

TEST(ClaimStepsTest, NoOrderOfAnswersLeavesATokenBehindOrUsesAWithdrawnOne) {
  for (const auto& [storeQueues, waitFirst] :
       {std::pair{false, false}, std::pair{true, false}, std::pair{true, true}}) {
    std::vector<int> path;
    ClaimGame(storeQueues, waitFirst).playFrom(path, 5);
  }
}

TEST(ClaimStepsTest, AClaimThatIsStoppedInAPauseLeavesNothingBehind) {
  for (const Answer what : {Answer::tooLate, Answer::busy, Answer::unavailable, Answer::unknown}) {
    ClaimStore store;
    ClaimSteps steps(store, false, false);
    for (int tries = 0; steps.next() != Step::pause; ++tries) {
      ASSERT_LT(tries, 2);
      store.send();
      answer(steps, store, what, times[0]);
    }
    steps.stop();
    EXPECT_EQ(steps.next(), Step::ended);
    EXPECT_FALSE(store.mayHavePresent());
  }
}

TEST(ClaimStepsTest, AKeyThatIsBusyIsWaitedForInTheStoresQueueAndPolledWithoutAPlaceThere) {
  ClaimStore store;
  ClaimSteps steps(store, true, false);
  const auto isBusy = [&] {
    store.send();
    answer(steps, store, Answer::busy, times[0]);
  };
  isBusy();
  EXPECT_EQ(steps.next(), Step::wait);
  isBusy();
  EXPECT_EQ(steps.next(), Step::pause);
  steps.resume();
  EXPECT_EQ(steps.next(), Step::ask);
}

TEST(ClaimStepsTest, ADoubtIsAskedAboutAtOnceAndOnce) {
  ClaimStore store;
  ClaimSteps steps(store, false, false);
  const auto isUnknown = [&] {
    store.send();
    answer(steps, store, Answer::unknown, times[0]);
  };
  isUnknown();
  EXPECT_EQ(steps.next(), Step::ask);
  EXPECT_TRUE(steps.isResend());
  isUnknown();
  EXPECT_EQ(steps.next(), Step::pause);
  steps.resume();
  EXPECT_TRUE(steps.isResend()) << "the same token tells what became of it";
}

TEST(ClaimStepsTest, WhoIsPerhapsInTheQueueGoesBackToItsPlace) {
  ClaimStore store;
  ClaimSteps steps(store, true, true);
  store.send();
  answer(steps, store, Answer::unknown, times[0]);
  ASSERT_EQ(steps.next(), Step::ask) << "it may have the key";
  store.send();
  answer(steps, store, Answer::busy, times[0]);
  EXPECT_EQ(steps.next(), Step::wait);
  EXPECT_TRUE(steps.isResend());
}

}  // namespace
}  // namespace lockkeeper::detail
