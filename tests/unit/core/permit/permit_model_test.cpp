#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <list>
#include <memory>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "lockkeeper/memory/memory_driver.h"
#include "lockkeeper/testing/fake_clock.h"
#include "lockkeeper/testing/fake_random.h"

// The embedded store against a reference, step by step on virtual time, with claims that wait.

namespace lockkeeper::test {

using lockkeeper::testing::FakeClock;
using lockkeeper::testing::FakeRandom;
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr std::uint32_t permitLimit = 5;

struct Party {
  Token token;
  std::optional<Share> share;
  milliseconds ttl{};
  Instant end{};
  std::future<AcquireResult> waits{};

  std::uint32_t weight() const { return share ? share->weight : permitLimit; }
  Claim claim() const { return {"order", token, "tester", share}; }
};

/// What a key should do: first come, first served, each lease on its own.
struct Reference {
  std::list<Party> held;
  std::list<Party> queue;

  // A whole claim takes all permits; the limit never differs here.
  bool fits(const Party& party) const {
    std::uint32_t used = 0;
    for (const Party& each : held) used += each.weight();
    return used + party.weight() <= permitLimit;
  }

  void serve(Instant now) {
    held.remove_if([&](const Party& each) { return each.end <= now; });
    while (!queue.empty() && fits(queue.front())) {
      queue.front().end = now + queue.front().ttl;
      held.splice(held.end(), queue, queue.begin());
    }
  }
};

class PermitModel : public ::testing::Test {
 protected:
  // So that a failed test ends.
  void TearDown() override { stop.request_stop(); }

  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(steps() % bound); }

  Party somebody() {
    Party party{.token = Token::generate(tokens),
                .share = Share{1 + below(permitLimit), permitLimit},
                .ttl = milliseconds{1 + below(50)}};
    if (below(6) == 0) party.share.reset();
    return party;
  }

  Party& anyone(std::list<Party>& of) {
    return *std::next(of.begin(), below(static_cast<std::uint32_t>(of.size())));
  }

  void tryOnce() {
    Party party = somebody();
    const AcquireResult result = store.acquire({party.claim(), party.ttl, {}});
    const bool expected = model.queue.empty() && model.fits(party);
    ASSERT_EQ(std::holds_alternative<Granted>(result), expected);
    if (expected) {
      party.end = clock->now() + party.ttl;
      model.held.push_back(std::move(party));
      return;
    }
    const auto first = std::ranges::min_element(model.held, {}, &Party::end);
    EXPECT_EQ(std::get<Busy>(result).retryAfter, std::chrono::ceil<milliseconds>(first->end - clock->now()));
  }

  void wait() {
    model.queue.push_back(somebody());
    Party& party = model.queue.back();
    party.waits = std::async(std::launch::async, [this, claim = party.claim(), ttl = party.ttl] {
      return store.acquireWaiting({claim, ttl, {}}, 24h, stop.get_token());
    });
    model.serve(clock->now());
  }

  void renewOrRelease() {
    if (model.held.empty()) return;
    Party& party = anyone(model.held);
    if (below(2) == 0) {
      Renewal renewal{.claim = party.claim(), .ttl = milliseconds{1 + below(50)}};
      store.renew({&renewal, 1}, {});
      ASSERT_EQ(renewal.outcome, RenewOutcome::renewed);
      party.end = clock->now() + renewal.ttl;
      return;
    }
    ASSERT_EQ(store.release(party.claim(), {}), ReleaseOutcome::released);
    ASSERT_EQ(store.release(party.claim(), {}), ReleaseOutcome::notOwner);
    model.held.remove_if([token = party.token](const Party& each) { return each.token == token; });
    model.serve(clock->now());
  }

  void pass(milliseconds length) {
    for (milliseconds step{0}; step < length; step += 1ms) {
      clock->advance(1ms);
      model.serve(clock->now());
      ASSERT_NO_FATAL_FAILURE(check());
    }
  }

  // Those who wait in the store are those who wait in the reference; those who were served have their grants.
  void check() {
    for (Party& each : model.held) {
      if (!each.waits.valid()) continue;
      ASSERT_EQ(each.waits.wait_for(20s), std::future_status::ready);
      ASSERT_TRUE(std::holds_alternative<Granted>(each.waits.get()));
    }
    // Those who have been told of a new end are on their way back for a moment.
    const auto end = std::chrono::steady_clock::now() + 20s;
    std::size_t waiting = clock->waiters();
    for (; waiting != model.queue.size() && std::chrono::steady_clock::now() < end;
         waiting = clock->waiters())
      std::this_thread::yield();
    ASSERT_EQ(waiting, model.queue.size());
    ASSERT_EQ(store.holder("order", {}).has_value(), !model.held.empty());
    const auto sharers =
        std::ranges::count_if(model.held, [](const Party& each) { return each.share.has_value(); });
    ASSERT_EQ(store.shareHolders("order", {}).size(), static_cast<std::size_t>(sharers));
  }

  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 steps{seed};
  FakeRandom tokens{seed};
  std::shared_ptr<FakeClock> clock = std::make_shared<FakeClock>();
  MemoryDriver store{clock};
  std::stop_source stop;
  Reference model;
};

TEST_F(PermitModel, ServesAsTheReferenceDoesInRandomSteps) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (int step = 0; step < 600 && !HasFatalFailure(); ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    switch (below(5)) {
      case 0:
        tryOnce();
        break;
      case 1:
        if (model.queue.size() < 6) wait();
        break;
      case 2:
        pass(milliseconds{below(8)});
        break;
      default:
        renewOrRelease();
    }
    if (!HasFatalFailure()) check();
  }
  // Nobody renews any more: all are served in the end.
  for (int step = 0; step < 1000 && !model.held.empty(); ++step) pass(1ms);
  EXPECT_FALSE(store.holder("order", {}));
}

}  // namespace
}  // namespace lockkeeper::test
