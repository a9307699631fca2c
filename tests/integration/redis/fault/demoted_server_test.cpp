// A server that has become a replica, while connections to it stay open. It refuses only what writes: what it
// answers without a write must not pass for the master's answer.

#include <functional>
#include <future>
#include <map>

#include "advanced_clock.h"
#include "lockkeeper/driver/batches.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/driver/rate_driver.h"
#include "lockkeeper/rate_limiter.h"
#include "lockkeeper/redis/value_store.h"
#include "redis_fixture.h"
#include "sentinel_group.h"

namespace lockkeeper::test::demoted {
namespace {

using namespace std::chrono_literals;

/// What an operation has answered, or the message of its error.
using Operation = std::function<std::string(LockDriver& driver)>;

class Ended final : public PostListener {
 public:
  void answered(ReleaseOutcome /*outcome*/) noexcept override { text_.set_value("an answer"); }
  void failed(ErrorCode /*code*/, std::string_view text) noexcept override {
    text_.set_value(std::string(text));
  }
  std::string text() { return text_.get_future().get(); }

 private:
  std::promise<std::string> text_;
};

Claimant sharer(const std::string& key, Share share = {1, 2}) {
  Claimant who;
  who.key = key;
  who.share = share;
  return who;
}

std::string renewal(LockDriver& driver, const Claimant& who) {
  Renewal renewal{.claim = who.claim(), .ttl = longTtl};
  driver.renew({&renewal, 1}, soon());
  return renewal.outcome == RenewOutcome::unavailable ? renewal.cause : "an answer";
}

const RatePolicy& oneADay() {
  static const RatePolicy& policy =
      *new RatePolicy("day", {.rate = Rate::parse("rate", "1/day"), .burst = 1});
  return policy;
}

std::string breaking(LockDriver& driver, const std::string& key) {
  const Holder another{.owner = {}, .remaining = {}, .fence = {}, .grantId = std::string(40, 'a')};
  (void)capability<Breakable>(driver)->breakLock(key, soon(), &another);
  return "an answer";
}

std::string release(LockDriver& driver, const Claimant& who) {
  (void)driver.release(who.claim(), soon());
  return "an answer";
}

const std::map<std::string, Operation>& operationsOfAll() {
  static const auto& all = *new std::map<std::string, Operation>{
      {"release", [](LockDriver& driver) { return release(driver, Claimant{}); }},
      {"release of another's key", [](LockDriver& driver) { return release(driver, {.key = "held"}); }},
      {"renewal", [](LockDriver& driver) { return renewal(driver, Claimant{}); }},
      {"renewal of another's key", [](LockDriver& driver) { return renewal(driver, {.key = "held"}); }},
      {"break", [](LockDriver& driver) { return breaking(driver, "nobody's"); }},
      {"break of another's key", [](LockDriver& driver) { return breaking(driver, "held"); }},
      {"acquire of another's key",
       [](LockDriver& driver) {
         (void)driver.acquire(Claimant{.key = "held"}.request());
         return "an answer";
       }},
      {"holder of a free key",
       [](LockDriver& driver) {
         (void)driver.holder("nobody's", soon());
         return "an answer";
       }},
  };
  return all;
}

const std::map<std::string, Operation>& operationsOfRedis() {
  static const auto& all = *new std::map<std::string, Operation>{
      {"posted release",
       [](LockDriver& driver) {
         const auto ended = std::make_shared<Ended>();
         if (!capability<Postable>(driver)->postRelease(Claimant{}.claim(), ended))
           return std::string("not posted");
         capability<Postable>(driver)->awaitPosted(soon());
         return ended->text();
       }},
      {"acquire of a share",
       [](LockDriver& driver) {
         (void)driver.acquire(sharer("shared", {2, 2}).request());
         return "an answer";
       }},
      {"acquire of a share of a held key",
       [](LockDriver& driver) {
         (void)driver.acquire(sharer("held").request());
         return "an answer";
       }},
      {"acquire of a share with another limit",
       [](LockDriver& driver) {
         (void)driver.acquire(sharer("shared", {1, 3}).request());
         return "an answer";
       }},
      {"renewal of a share", [](LockDriver& driver) { return renewal(driver, sharer("shared")); }},
      {"release of a share", [](LockDriver& driver) { return release(driver, sharer("shared")); }},
      {"break of a share", [](LockDriver& driver) { return breaking(driver, "shared"); }},
      {"resize of a free key",
       [](LockDriver& driver) {
         (void)capability<Permits>(driver)->resize("nobody's", 3, soon());
         return "an answer";
       }},
      {"holders of a free key",
       [](LockDriver& driver) {
         (void)capability<Permits>(driver)->shareHolders("nobody's", soon());
         return "an answer";
       }},
      {"a refused charge",
       [](LockDriver& driver) {
         RateCharge charge{.key = "spent", .law = &oneADay().law()};
         capability<RateDriver>(driver)->take({&charge, 1}, soon());
         return "an answer";
       }},
      {"a charge that is only asked for",
       [](LockDriver& driver) {
         RateCharge charge{.key = "spent", .law = &oneADay().law()};
         capability<RateDriver>(driver)->peek({&charge, 1}, soon());
         return "an answer";
       }},
      {"a refund of nothing",
       [](LockDriver& driver) {
         const RateRefund refund{.key = "unused", .law = &oneADay().law()};
         (void)capability<RateDriver>(driver)->refund(refund, soon());
         return "an answer";
       }},
  };
  return all;
}

/// A master that holds "held", a share of "shared" and the only unit of "spent", and becomes a replica of
/// nobody who answers.
class DemotedServer : public ::testing::Test {
 protected:
  static void fill(LockDriver& driver) {
    ASSERT_TRUE(granted(driver.acquire(Claimant{.key = "held"}.request())));
    if (capability<Permits>(driver) == nullptr) return;
    ASSERT_TRUE(granted(driver.acquire(sharer("shared").request())));
    RateCharge charge{.key = "spent", .law = &oneADay().law()};
    capability<RateDriver>(driver)->take({&charge, 1}, soon());
    ASSERT_EQ(charge.outcome.granted, 1);
  }

  template <class Open>
  static void expectRefusals(const RedisServer& server, const Open& open,
                             const std::map<std::string, Operation>& operations) {
    for (const auto& [name, operation] : operations) {
      SCOPED_TRACE(name);
      const auto driver = open();
      // Connects, and shows that the server has the scripts.
      (void)driver->release(Claimant{}.claim(), soon());
      server.command({"REPLICAOF", "127.0.0.1", "1"});
      std::string said;
      try {
        said = operation(*driver);
      } catch (const StoreUnavailable& error) {
        said = error.what();
      } catch (const Error& error) {
        said = std::string(toString(error.code())) + ": " + error.what();
      }
      EXPECT_NE(said.find("refused the command: READONLY"), std::string::npos) << said;
      server.command({"REPLICAOF", "NO", "ONE"});
    }
  }

  const RedisServer server;
};

TEST_F(DemotedServer, SaysNothingAboutLocksSharesAndLimits) {
  const auto open = [&] { return openRedis(server.port()); };
  fill(*open());
  expectRefusals(server, open, operationsOfAll());
  expectRefusals(server, open, operationsOfRedis());
}

TEST_F(DemotedServer, SaysNothingAboutLegacyLocks) {
  const auto open = [&] { return openRedis(server.port(), "", "redis+legacy"); };
  fill(*open());
  expectRefusals(server, open, operationsOfAll());
}

TEST_F(DemotedServer, DoesNotSayThatAValueIsMissing) {
  StoreRegistry registry;
  redis::use(registry);
  Environment environment;
  const auto clock = std::make_shared<AdvancedClock>();
  environment.clock = clock;
  const auto values = registry.openValues(server.uri(), environment);
  EXPECT_FALSE(values->get("k", soon()));
  const auto infosAsked = [&] {
    const std::string stats = server.command({"INFO", "commandstats"});
    const std::string calls = "cmdstat_info:calls=";
    return std::stoi(stats.substr(stats.find(calls) + calls.size()));
  };
  const int before = infosAsked();
  for (int misses = 0; misses < 20; ++misses) EXPECT_FALSE(values->get("k", soon()));
  EXPECT_EQ(infosAsked(), before + 1) << "that is the one before it";
  server.command({"REPLICAOF", "127.0.0.1", "1"});
  clock->ahead = 6s;
  EXPECT_THROW((void)values->get("k", clock->now() + 10s), StoreUnavailable)
      << "after a pause, it is asked first";
  server.command({"REPLICAOF", "NO", "ONE"});
  EXPECT_TRUE(waitUntil([&] {
    try {
      return !values->get("k", soon());
    } catch (const StoreUnavailable&) {
      return false;
    }
  }));
}

// While the sentinels do not know it yet.
TEST(DemotedMaster, OfSentinelsSaysNothingAboutLocks) {
  SentinelGroup group({.replicas = 0});
  StoreRegistry registry;
  redis::use(registry);
  for (const bool isRelease : {true, false}) {
    const auto driver = registry.open(group.uri());
    (void)driver->release(Claimant{}.claim(), soon());
    group.first().command({"REPLICAOF", "127.0.0.1", "1"});
    if (isRelease) {
      EXPECT_THROW((void)driver->release(Claimant{}.claim(), soon()), StoreUnavailable);
    } else {
      EXPECT_NE(renewal(*driver, Claimant{}), "an answer");
    }
    group.first().command({"REPLICAOF", "NO", "ONE"});
  }
}

}  // namespace
}  // namespace lockkeeper::test::demoted
