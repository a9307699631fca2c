#include "lockkeeper/poco/lock_services.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "captured_log.h"
#include "configurations.h"
#include "decorators.h"
#include "lockkeeper/error.h"
#include "lockkeeper/memory/memory_driver.h"
#include "refusal.h"

namespace lockkeeper::poco {
namespace {

using namespace std::chrono_literals;
using test::refusalOf;

LockServices services(const std::string& text, const StoreRegistry& stores = {}) {
  return fromConfiguration(*properties(text), stores);
}

std::string refused(const std::string& text, const StoreRegistry& stores = {}) {
  return refusalOf<ConfigError>([&] { services(text, stores); });
}

/// Has a store of somebody else, which keeps locks and nothing more.
StoreRegistry withOtherStore(const std::string& scheme = "other") {
  StoreRegistry stores;
  stores.add(scheme, [](const StoreUri&, const Environment&) {
    return std::make_shared<test::PlainDecorator>(std::make_shared<MemoryDriver>());
  });
  return stores;
}

/// The memory of what is made with it: how many blocks there are.
template <class Value>
struct CountingAllocator {
  using value_type = Value;

  explicit CountingAllocator(std::atomic<int>& count) : blocks(&count) {}
  template <class Other>
  explicit(false) CountingAllocator(const CountingAllocator<Other>& other) : blocks(other.blocks) {}
  Value* allocate(std::size_t count) {
    ++*blocks;
    return std::allocator<Value>().allocate(count);
  }
  void deallocate(Value* memory, std::size_t count) {
    --*blocks;
    std::allocator<Value>().deallocate(memory, count);
  }
  bool operator==(const CountingAllocator&) const = default;

  std::atomic<int>* blocks;
};

/// A filter without a server, which shows by which options it goes.
class FollowingFilter : public HttpFilter<RateLimitOptions> {
 public:
  explicit FollowingFilter(std::function<void()> preparing = nullptr)
      : FollowingFilter(std::make_shared<Options>(std::move(preparing))) {}
  explicit FollowingFilter(std::atomic<int>& memory)
      : FollowingFilter(std::allocate_shared<Options>(CountingAllocator<Options>(memory), nullptr)) {}

  /// Of the limit that it has; 0: it has none.
  std::int64_t limit() const {
    const auto sms = options_->present.policies.find("sms");
    return sms == options_->present.policies.end() ? 0 : sms->second.limit();
  }

 private:
  struct Options final : State {
    explicit Options(std::function<void()> during) : preparing(std::move(during)) {}
    std::function<void()> prepare(RateLimitOptions options) override {
      if (preparing) preparing();
      return [this, options = std::move(options)] { present = options; };
    }
    Handlers wrap(Handlers handlers) override { return handlers; }

    const std::function<void()> preparing;
    RateLimitOptions present{};
  };

  explicit FollowingFilter(std::shared_ptr<Options> options) : HttpFilter(options), options_(options) {}

  std::shared_ptr<Options> options_;
};

TEST(LockServices, LocksAndLimitsAsConfigured) {
  const LockServices shop = services(
      "lockkeeper.store = memory:\nlockkeeper.namespace = shop\nlockkeeper.lock.ttl = 7s\n"
      "lockkeeper.lock.owner = till-4\nlockkeeper.lock.waitFor = 1ms\n"
      "lockkeeper.limits.sms.rate = 1/h\nlockkeeper.limits.sms.burst = 2\n");
  const Lock held = shop.locks().lock("order:42");
  EXPECT_EQ(shop.locks().holder("order:42")->owner, "till-4");
  EXPECT_LE(held.remaining(), 7s);
  EXPECT_GT(held.remaining(), 3s);
  EXPECT_FALSE(shop.locks().tryLock("order:42"));
  LockOptions longer = shop.locks().defaults();
  longer.ttl = 1h;
  EXPECT_GT(shop.locks().lock("other", longer).remaining(), 30min);

  const RatePolicy& sms = shop.policy("sms");
  EXPECT_TRUE(shop.limits().take("+49", sms));
  EXPECT_TRUE(shop.limits().take("+49", sms));
  EXPECT_FALSE(shop.limits().take("+49", sms));
  EXPECT_EQ(&shop.limits(), shop.sharedLimits().get());
}

TEST(LockServices, MigratesBetweenTwoStores) {
  const LockServices shop = services(
      "lockkeeper.store = memory:\nlockkeeper.migration.from = other:\n"
      "lockkeeper.migration.phase = both\n",
      withOtherStore());
  EXPECT_TRUE(shop.locks().tryLock("k")->valid());
}

TEST(LockServices, ALimitThatIsNotThereNamesTheNearest) {
  const LockServices shop = services(
      "lockkeeper.store = memory:\nlockkeeper.limits.sms.rate = 1/s\nlockkeeper.limits.mail.rate = 1/s\n");
  EXPECT_EQ(refusalOf<ConfigError>([&] { (void)shop.policy("smss"); }),
            "lockkeeper.limits.smss.rate is missing: did you mean the limit 'sms'?");
  EXPECT_EQ(refusalOf<ConfigError>([] { (void)services("lockkeeper.store = memory:\n").policy("sms"); }),
            "lockkeeper.limits.sms.rate is missing: no limit is configured");
}

TEST(LockServices, AfterAReloadPoliciesAreThoseOfTheFilters) {
  LockServices shop = services("lockkeeper.store = memory:\nlockkeeper.limits.sms.rate = 1/h\n");
  const RatePolicy& before = shop.policy("sms");
  const Configuration other = properties("lockkeeper.limits.sms.rate = 2/h\nlockkeeper.tasks.t.ttl = 9s\n");
  shop.reload(readSettings(*other));
  EXPECT_EQ(shop.policy("sms").limit(),
            RateLimitOptions::fromConfiguration(*other).policies.at("sms").limit());
  EXPECT_EQ(shop.policy("sms").limit(), 2);
  EXPECT_EQ(shop.task("t").ttl, 9s);
  EXPECT_EQ(before.limit(), 1) << "what was given out stays";
  EXPECT_EQ(refusalOf<ConfigError>(
                [&] { shop.reload(readSettings(*properties("lockkeeper.limits.sms.burst = 2\n"))); }),
            "limit 'sms': rate is missing, such as rate = 2/s");
  EXPECT_EQ(shop.policy("sms").limit(), 2);
}

TEST(LockServices, AReloadReachesWhoeverKeepsALimit) {
  LockServices shop = services(
      "lockkeeper.store = memory:\nlockkeeper.limits.sms.rate = 1/h\nlockkeeper.limits.mail.rate = 1/h\n");
  const LivePolicy sms = shop.livePolicy("sms");
  const LivePolicy copy = sms;
  const RatePolicy& before = sms.now();
  EXPECT_TRUE(shop.limits().take("+49", sms));
  EXPECT_FALSE(shop.limits().take("+49", sms));
  shop.reload(readSettings(*properties("lockkeeper.limits.sms.rate = 3/h\n")));
  EXPECT_EQ(sms.now().limit(), 3);
  EXPECT_EQ(copy.now().limit(), 3);
  EXPECT_EQ(shop.livePolicy("sms").now().limit(), 3);
  EXPECT_EQ(shop.limits().take("+49 2", sms).remaining, 2);
  EXPECT_EQ(before.limit(), 1) << "what was given out stays";

  const auto without = readSettings(*properties("lockkeeper.limits.mail.rate = 9/h\n"));
  EXPECT_EQ(refusalOf<ConfigError>([&] { shop.reload(without); }),
            "lockkeeper.limits.sms.rate is missing: did you mean the limit 'mail'?");
  EXPECT_EQ(sms.now().limit(), 3);
  EXPECT_EQ(refusalOf<ConfigError>([&] { (void)shop.policy("mail"); }),
            "lockkeeper.limits.mail.rate is missing: did you mean the limit 'sms'?")
      << "nothing of a wrong configuration counts";
  EXPECT_EQ(refusalOf<ConfigError>([&] { (void)shop.livePolicy("smss"); }),
            "lockkeeper.limits.smss.rate is missing: did you mean the limit 'sms'?");
}

TEST(LockServices, ALimitMayBeUsedWhileItIsReloaded) {
  const auto limited = [](int perHour) {
    return "lockkeeper.limits.sms.rate = " + std::to_string(perHour) + "/h\n";
  };
  std::optional<LockServices> shop(services("lockkeeper.store = memory:\n" + limited(1)));
  const LivePolicy sms = shop->livePolicy("sms");
  std::atomic<bool> wrong = false;
  std::atomic<bool> asked = false;
  std::jthread asking([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const RatePolicy& now = sms.now();
      if (now.limit() != now.law().limit || now.limit() > 200) wrong = true;
      asked = true;
    }
  });
  while (!asked) std::this_thread::yield();
  for (int i = 2; i <= 200; ++i) shop->reload(readSettings(*properties(limited(i))));
  EXPECT_EQ(sms.now().limit(), 200);
  shop.reset();
  EXPECT_EQ(sms.now().limit(), 200) << "it may outlive the services";
  asking = {};
  EXPECT_FALSE(wrong);
}

TEST(LockServices, AReloadChangesAllFiltersOrNothing) {
  const std::string good =
      "lockkeeper.store = memory:\nlockkeeper.limits.sms.rate = 1/h\n"
      "lockkeeper.http.routes.sms.match = POST /sms\nlockkeeper.http.routes.sms.limits.sms = user\n"
      "lockkeeper.http.locks.item.match = PUT /items/{id}\nlockkeeper.http.locks.item.by = path id\n"
      "lockkeeper.http.idempotency.store = memory:\n"
      "lockkeeper.http.idempotency.routes.pay.match = POST /pay\n";
  const Configuration configuration = properties(good);
  LockServices shop = services(good);
  const UserOf user = [](const Poco::Net::HTTPServerRequest&) { return std::string("a"); };
  RateLimitOptions limits = RateLimitOptions::fromConfiguration(*configuration);
  limits.clients.user = user;
  IdempotencyOptions once = IdempotencyOptions::fromConfiguration(*configuration);
  once.clients.user = user;
  std::optional<RateLimitFilter> limiting(std::in_place, shop.sharedLimits(), limits);
  const RequestLocks locking(shop.sharedLocks(), RequestLockOptions::fromConfiguration(*configuration));
  const Idempotency repeating(shop.sharedLocks(), shop.sharedAnswers(), once);
  shop.follow(*limiting);
  shop.follow(locking);
  shop.follow(repeating);
  shop.reload(readSettings(*configuration));  // by "user", which takes the hook that they have

  // Each wrong for one of them alone; the limit itself is right.
  const auto refusedWith = [&](const std::string& text) {
    const Settings settings = readSettings(*properties(good + "lockkeeper.limits.sms.rate = 7/h\n" + text));
    const std::string message = refusalOf<ConfigError>([&] { shop.reload(settings); });
    EXPECT_EQ(shop.policy("sms").limit(), 1) << text;
    return message;
  };
  EXPECT_NE(refusedWith("lockkeeper.http.routes.sms.match = sms\n").find("lockkeeper.http.routes.sms.match"),
            std::string::npos);
  EXPECT_NE(refusedWith("lockkeeper.http.locks.item.match = item\n").find("lockkeeper.http.locks.item.match"),
            std::string::npos);
  const std::string pay = "lockkeeper.http.idempotency.routes.pay.match";
  EXPECT_NE(refusedWith(pay + " = GET /pay\n").find(pay), std::string::npos);
  limiting.reset();
  shop.reload(readSettings(*properties(good + "lockkeeper.http.routes.sms.match = sms\n")));  // it has ended
}

TEST(LockServices, WhoBeginsToFollowDuringOrAfterAReloadDoesNotMissIt) {
  LockServices shop = services("lockkeeper.store = memory:\nlockkeeper.limits.sms.rate = 1/h\n");
  const FollowingFilter late;
  std::jthread following;
  const FollowingFilter early([&, prepared = 0]() mutable {
    if (++prepared == 2) following = std::jthread([&] { shop.follow(late); });
  });
  shop.follow(early);
  EXPECT_EQ(early.limit(), 1);
  shop.reload(readSettings(*properties("lockkeeper.limits.sms.rate = 2/h\n")));
  following = {};
  EXPECT_EQ(early.limit(), 2);
  EXPECT_EQ(late.limit(), 2);

  const FollowingFilter latest;  // which was made from the options before
  shop.follow(latest);
  EXPECT_EQ(latest.limit(), 2);
  shop.reload(readSettings(*properties("lockkeeper.limits.sms.rate = 3/h\n")));
  EXPECT_EQ(late.limit(), 3);
  EXPECT_EQ(latest.limit(), 3);
}

TEST(LockServices, WhoCannotGoByTheOptionsDoesNotFollow) {
  LockServices shop = services("lockkeeper.store = memory:\nlockkeeper.limits.sms.rate = 1/h\n");
  bool fits = false;
  const FollowingFilter filter([&] {
    if (!fits) throw std::invalid_argument("lockkeeper.http.routes.sms.limits.sms needs a user");
  });
  EXPECT_EQ(refusalOf<ConfigError>([&] { shop.follow(filter); }),
            "lockkeeper.http.routes.sms.limits.sms needs a user");
  shop.reload(readSettings(*properties("lockkeeper.limits.sms.rate = 2/h\n")));
  EXPECT_EQ(filter.limit(), 0);
  fits = true;
  shop.follow(filter);
  EXPECT_EQ(filter.limit(), 2);
}

TEST(LockServices, NothingStaysOfFollowersThatHaveEnded) {
  std::atomic<int> memory = 0;
  LockServices shop = services("lockkeeper.store = memory:\n");
  for (int i = 0; i < 100; ++i) shop.follow(FollowingFilter(memory));
  EXPECT_LE(memory, 1) << "one follows when the one before it has ended";
  shop.reload(readSettings(*properties("lockkeeper.limits.sms.rate = 2/h\n")));
  EXPECT_EQ(memory, 0);
}

TEST(LockServices, WhatEndsWithAReloadMayUseTheServices) {
  LockServices shop = services("lockkeeper.store = memory:\nlockkeeper.limits.sms.rate = 1/h\n");
  const FollowingFilter other;
  RateLimitOptions options;
  options.report =
      [ends = std::shared_ptr<void>(nullptr, [&](void*) { shop.follow(other); })](const RateLimitReport&) {};
  std::optional<RateLimitFilter> filter(std::in_place, shop.sharedLimits(), std::move(options));
  options.report = nullptr;
  shop.follow(*filter);
  const FollowingFilter ending([&, prepared = 0]() mutable {
    if (++prepared == 2) filter.reset();  // the reload keeps it to its end
  });
  shop.follow(ending);
  EXPECT_EQ(other.limit(), 0);
  shop.reload(readSettings(*properties("lockkeeper.limits.sms.rate = 2/h\n")));
  EXPECT_EQ(other.limit(), 2);
}

TEST(LockServices, KeepsAnswersInAStoreOfTheirOwn) {
  const std::string route = "lockkeeper.http.idempotency.routes.pay.match = POST /payments\n";
  const std::string own = "lockkeeper.http.idempotency.store = memory:\n";
  const StoreRegistry stores = withOtherStore();
  const std::string other = "lockkeeper.store = other:\n";
  EXPECT_NE(services(other + own + route, stores).sharedAnswers(), nullptr);
  EXPECT_NE(
      refused("lockkeeper.store = memory:\n" + route).find("lockkeeper.http.idempotency.store is missing"),
      std::string::npos)
      << "they share the store of the locks only when that is written";
  const std::string shared = "lockkeeper.http.idempotency.store = ${lockkeeper.store}\n";
  EXPECT_NE(services("lockkeeper.store = memory:\n" + shared + route).sharedAnswers(), nullptr);
  EXPECT_NE(refused(other + shared + route, stores).find("lockkeeper.http.idempotency.store: "),
            std::string::npos);
  EXPECT_EQ(refusalOf<ConfigError>([&] { (void)services(other, stores).sharedAnswers(); }),
            "lockkeeper.http.idempotency.store is missing, where answers are kept");
  EXPECT_NE(refused(other + "lockkeeper.http.idempotency.store = redis://h\n", stores)
                .find("lockkeeper.http.idempotency.store: this program has no driver"),
            std::string::npos);
}

/// A store that refuses its password.
class GuardedStore final : public test::PlainDecorator {
 public:
  GuardedStore() : PlainDecorator(std::make_shared<MemoryDriver>()) {}
  AcquireResult acquire(const AcquireRequest&) override { throw ConfigError("WRONGPASS, says the store"); }
};

TEST(LockServices, TheLogSaysWhyAStoreCannotBeAsked) {
  const test::CapturedLog log("lockkeeper");
  StoreRegistry stores;
  stores.add("guarded", [](const StoreUri&, const Environment&) { return std::make_shared<GuardedStore>(); });
  const LockServices shop = services("lockkeeper.store = guarded:\n", stores);
  EXPECT_THROW((void)shop.locks().tryLock("order:42"), ConfigError);
  EXPECT_NE(log.text().find("WRONGPASS"), std::string::npos) << log.text();
}

TEST(LockServices, RunsTasksAsConfigured) {
  const LockServices shop = services(
      "lockkeeper.store = memory:\nlockkeeper.tasks.report.atLeast = 1h\nlockkeeper.tasks.report.atMost = "
      "2h\n"
      "lockkeeper.tasks.clean-up.ttl = 9s\n");
  const ExclusiveTask report(shop.sharedLocks(), shop.task("report"), [](const Lock&, std::stop_token) {});
  EXPECT_EQ(report.run(), TaskOutcome::done);
  EXPECT_EQ(report.run(), TaskOutcome::skipped) << "within atLeast";
  EXPECT_TRUE(shop.locks().isLocked("report"));
  EXPECT_EQ(shop.task("clean-up").atMost, TaskOptions{}.atMost);
  EXPECT_EQ(refusalOf<ConfigError>([&] { (void)shop.task("reprot"); }),
            "lockkeeper.tasks.reprot.atMost is missing: did you mean the task 'report'?");
  EXPECT_EQ(refusalOf<ConfigError>([] { (void)services("lockkeeper.store = memory:\n").task("report"); }),
            "lockkeeper.tasks.report.atMost is missing: no task is configured");
}

TEST(LockServices, SchedulesTasksAsConfigured) {
  const LockServices shop = services(
      "lockkeeper.store = memory:\nlockkeeper.namespace = shop\n"
      "lockkeeper.tasks.nightly.cron = 30 2 * * *\nlockkeeper.tasks.nightly.timeZone = Europe/Berlin\n"
      "lockkeeper.tasks.nightly.missed = once\nlockkeeper.tasks.nightly.clockSkew = 1m\n"
      "lockkeeper.tasks.often.every = 1h\nlockkeeper.tasks.often.missed = "
      "once\nlockkeeper.tasks.often.atMost = 9s\n"
      "lockkeeper.tasks.unplanned.atMost = 9s\n");
  std::promise<void> ran;
  const auto once = [&, done = false](const Lock& lock, const std::stop_token&) mutable {
    EXPECT_EQ(lock.key(), "often");
    if (!std::exchange(done, true)) ran.set_value();
  };
  ScheduledTask often = shop.schedule("often", once);
  EXPECT_EQ(ran.get_future().wait_for(20s), std::future_status::ready) << "the last full hour, at once";
  often = shop.schedule("nightly", [](const Lock&, const std::stop_token&) {});
  EXPECT_EQ(shop.task("often").atMost, 9s);
  EXPECT_EQ(refusalOf<ConfigError>([&] { (void)shop.schedule("nihgtly", once); }),
            "lockkeeper.tasks.nihgtly.cron is missing: did you mean the task 'nightly'?");
  EXPECT_EQ(refusalOf<ConfigError>([&] { (void)shop.schedule("unplanned", once); }),
            "lockkeeper.tasks.unplanned.cron is missing: did you mean the task 'nightly'?");
}

TEST(LockServices, RefusesSchedulesThatAreNone) {
  const std::string task = "lockkeeper.store = memory:\nlockkeeper.tasks.t.";
  EXPECT_EQ(refused(task + "cron = 30 25 * * *\n"),
            "lockkeeper.tasks.t.cron: '30 25 * * *' is not a cron expression: the hour is '25': 0 to 23, "
            "ranges such "
            "as 2-5 and steps such as */5 or 2-10/3 are allowed, and lists of these with ','");
  EXPECT_EQ(
      refused(task + "cron = 30 2 31 2 *\n"),
      "lockkeeper.tasks.t.cron: '30 2 31 2 *' is not a cron expression: it never comes: no month that it "
      "names has such a day");
  EXPECT_EQ(refused(task + "cron = @daily\nlockkeeper.tasks.t.timeZone = Berlin\n"),
            "lockkeeper.tasks.t.timeZone: the time zone 'Berlin' cannot be used: there is no such zone: UTC "
            "and the "
            "names below /usr/share/zoneinfo/ (Debian's package tzdata) are allowed, such as Europe/Berlin");
  EXPECT_EQ(refused(task + "every = 0s\n"),
            "lockkeeper.tasks.t.every: the period of a schedule is 0s: it must be 1s to 8784h");
  EXPECT_EQ(refused(task + "every = 1h\nlockkeeper.tasks.t.cron = @daily\n"),
            "lockkeeper.tasks.t.every is 1h beside lockkeeper.tasks.t.cron: one of them is allowed");
  EXPECT_EQ(refused(task + "every = 1h\nlockkeeper.tasks.t.timeZone = Europe/Berlin\n"),
            "lockkeeper.tasks.t.every is 1h beside lockkeeper.tasks.t.timeZone, which is for cron: every "
            "counts in UTC");
  EXPECT_EQ(
      refused(task + "missed = once\n"),
      "lockkeeper.tasks.t.cron is missing: timeZone, missed and clockSkew are for tasks with cron or every");
  EXPECT_EQ(refused(task + "missed = twice\n"),
            "lockkeeper.tasks.t.missed is 'twice': skip and once are allowed");
  EXPECT_EQ(refused(task + "every = 1h\nlockkeeper.tasks.t.clockSkew = 2h\n"),
            "lockkeeper.tasks.t: clockSkew is 2h: it must be 0s to 1h");
  EXPECT_EQ(refused("lockkeeper.migration.from = other:\n" + task +
                        "every = 2h\nlockkeeper.tasks.t.missed = once\n",
                    withOtherStore()),
            "the lease of each tick of lockkeeper.tasks.t is 7362s: during a migration at most "
            "lockkeeper.migration.maxTtl, 5m, is allowed");
}

TEST(LockServices, AScheduleThatWasMadeInCodeNeedsItsTask) {
  Settings settings;
  settings.store = "memory:";
  settings.schedules["t"].cron = "@daily";
  EXPECT_EQ(refusalOf<ConfigError>([&] { LockServices(settings, StoreRegistry()); }),
            "lockkeeper.tasks.t has a schedule, but is no task");
}

TEST(LockServices, TakesTheDriversOfOthers) {
  const StoreRegistry stores = withOtherStore();
  EXPECT_TRUE(services("lockkeeper.store = other:\n", stores).locks().tryLock("k"));
}

TEST(LockServices, AStoreWithoutLimitsIsToldWhereLimitsAreUsed) {
  const StoreRegistry stores = withOtherStore();
  const std::string none =
      "lockkeeper.store: the store other: keeps no rate limits: name one that does in "
      "lockkeeper.limiter.store";
  const LockServices locksOnly = services("lockkeeper.store = other:\n", stores);
  EXPECT_EQ(refusalOf<ConfigError>([&] { (void)locksOnly.limits(); }), none);
  const std::string limit = "lockkeeper.store = other:\nlockkeeper.limits.sms.rate = 1/s\n";
  EXPECT_EQ(refused(limit, stores), none);
  EXPECT_EQ(refused("lockkeeper.store = memory:\nlockkeeper.limiter.store = other:\n", stores),
            "lockkeeper.limiter.store" + none.substr(16));
  const LockServices both = services(limit + "lockkeeper.limiter.store = memory:\n", stores);
  EXPECT_TRUE(both.limits().take("k", both.policy("sms")));
}

TEST(LockServices, NamesTheComponentThatIsNotLinked) {
  const auto missing = [](const std::string& scheme, const std::string& component) {
    EXPECT_EQ(refused("lockkeeper.store = " + scheme + "://:s3cr3t@h/1\n"),
              "lockkeeper.store: this program has no driver for the scheme '" + scheme +
                  "': link lockkeeper::" + component + " and call lockkeeper::" + component +
                  "::use(stores)");
  };
  for (const auto* scheme : {"redis", "rediss", "redis+unix", "redis+legacy", "redlock"})
    missing(scheme, "redis");
  for (const auto* scheme : {"mysql+getlock", "mysql+version"}) missing(scheme, "mysql");
  for (const auto* scheme : {"etcd", "etcds"}) missing(scheme, "etcd");
  EXPECT_EQ(
      refused("lockkeeper.store = zookeeper://:s3cr3t@h\n"),
      "lockkeeper.store: no driver is registered for the scheme 'zookeeper': this program knows memory");
  const std::string elsewhere =
      ": this program has no driver for the scheme 'redis': link lockkeeper::redis and call "
      "lockkeeper::redis::use(stores)";
  const std::string store = "lockkeeper.store = memory:\n";
  EXPECT_EQ(refused(store + "lockkeeper.limiter.store = redis://h\n"),
            "lockkeeper.limiter.store" + elsewhere);
  const std::string from = "lockkeeper.migration.from = ";
  EXPECT_EQ(refused(store + from + "redis://h\n"), "lockkeeper.migration.from" + elsewhere);
  EXPECT_EQ(refused(store + from + "memory:\nlockkeeper.migration.stateStore = redis://h\n"),
            "lockkeeper.migration.stateStore" + elsewhere);
}

TEST(LockServices, NamesTheSettingThatCannotBe) {
  EXPECT_EQ(refused(""),
            "lockkeeper.store is missing, such as lockkeeper.store = redis://host:6379/0; memory: is for one "
            "process alone");
  EXPECT_EQ(refused("lockkeeper.store = redis://:s3cr3t@a, mysql+getlock://b\n"),
            "lockkeeper.store: the store's URI is followed by another one: one store can be named");
  EXPECT_EQ(refused("lockkeeper.store = memory:?size=3\n"),
            "lockkeeper.store: the store's parameter 'size' is unknown: memory knows none");
  const std::string store = "lockkeeper.store = memory:\n";
  EXPECT_EQ(refused(store + "lockkeeper.lock.ttl = 25h\n"),
            "lockkeeper.lock: ttl is 25h: it must be 10ms to 24h");
  EXPECT_EQ(refused(store + "lockkeeper.lock.ttl = 10s\nlockkeeper.lock.safetyMargin = 6s\n"),
            "lockkeeper.lock: safetyMargin is 6s: it must be 0s to 4898ms");
  EXPECT_EQ(refused(store + "lockkeeper.lock.operationTimeout = 0s\n"),
            "lockkeeper.lock: operationTimeout is 0s: it must be 1ms to 1h");
  EXPECT_EQ(refused(store + "lockkeeper.lock.owner = me@home\n"),
            "lockkeeper.lock: the owner 'me@home' is not 1 to 64 printable characters without '@', the last "
            "one not '~'");
  EXPECT_EQ(refused(store + "lockkeeper.limiter.operationTimeout = 2h\n"),
            "lockkeeper.limiter: operationTimeout is 2h: it must be 1ms to 1h");
  EXPECT_EQ(refused(store + "lockkeeper.tasks.report.atLeast = 11m\n"),
            "lockkeeper.tasks.report: atMost is 10m: it must be 11m to 8784h");
  EXPECT_EQ(refused(store + "lockkeeper.limits.sms.rate = 2/s\nlockkeeper.limits.sms.kind = bucket\n"),
            "limit 'sms': kind is 'bucket': it must be one of token-bucket, leaky-meter, leaky-queue, "
            "sliding-window, fixed-window");
}

TEST(LockServices, RefusesAMigrationThatCannotBe) {
  const StoreRegistry stores = withOtherStore();
  EXPECT_EQ(
      refused("lockkeeper.store = other://h:1/2\nlockkeeper.migration.from = other://:s3cr3t@h:1/2\n",
              stores),
      "lockkeeper.migration: the migration's old and new store are both other://h:1/2: they must be two");
  EXPECT_EQ(refused("lockkeeper.store = other:\nlockkeeper.migration.from = memory:\n", stores),
            "lockkeeper.migration: the store other: cannot keep a migration's state: name one that can, such "
            "as redis://…, in "
            "migration.stateStore");
  EXPECT_EQ(
      refused("lockkeeper.store = memory:\nlockkeeper.migration.from = other:\nlockkeeper.lock.ttl = 6m\n",
              stores),
      "lockkeeper.lock.ttl is 6m: during a migration at most lockkeeper.migration.maxTtl, 5m, is allowed");
  EXPECT_EQ(refused("lockkeeper.store = memory:\nlockkeeper.migration.from = other:\n"
                    "lockkeeper.tasks.report.atLeast = 6m\n",
                    stores),
            "the lease of lockkeeper.tasks.report is 6m: during a migration at most "
            "lockkeeper.migration.maxTtl, 5m, is allowed");
}

TEST(LockServices, RefusesRoutesWhoseLocksAreTooLongForAMigration) {
  const auto refusedWith = [](const std::string& settings) {
    return refused("lockkeeper.store = memory:\nlockkeeper.migration.from = other:\n" + settings,
                   withOtherStore());
  };
  const std::string rest = ": during a migration at most lockkeeper.migration.maxTtl, ";
  EXPECT_EQ(refusedWith("lockkeeper.http.locks.order.match = PUT /orders/{id}\n"
                        "lockkeeper.http.locks.order.by = path id\n"
                        "lockkeeper.http.locks.order.ttl = 6m\n"),
            "lockkeeper.http.locks.order.ttl is 6m" + rest + "5m, is allowed");
  const std::string pay = "lockkeeper.http.idempotency.routes.pay.match = POST /payments\n";
  EXPECT_EQ(refusedWith(pay + "lockkeeper.http.idempotency.routes.pay.ttl = 6m\n"),
            "lockkeeper.http.idempotency.routes.pay.ttl is 6m" + rest + "5m, is allowed");
  EXPECT_EQ(refusedWith(pay + "lockkeeper.lock.ttl = 10s\nlockkeeper.migration.maxTtl = 20s\n"),
            "lockkeeper.http.idempotency.routes.pay.ttl is 30s" + rest + "20s, is allowed")
      << "its default";
}

}  // namespace
}  // namespace lockkeeper::poco
