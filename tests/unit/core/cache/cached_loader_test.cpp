#include "lockkeeper/cached_loader.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>

#include "lock/manager_fixture.h"

namespace lockkeeper::test {

using lockkeeper::testing::FakeRandom;
namespace {

/// Values behind a network that fails on demand, and that counts what it was asked.
class FaultyValues final : public ValueStore {
 public:
  explicit FaultyValues(std::shared_ptr<ValueStore> inner) : inner_(std::move(inner)) {}

  std::atomic<bool> down = false;
  std::atomic<bool> firstPartIsDown = false;
  std::atomic<int> requests = 0;
  std::string wrongKey;                               // of another type: set it before any request
  std::function<void(std::string_view key)> onGot{};  // before the caller has what was read; likewise

  std::optional<std::string> get(std::string_view key, Instant deadline) override {
    auto value = reached(key).get(key, deadline);
    if (onGot) onGot(key);
    return value;
  }
  void put(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
           Instant deadline) override {
    reached(key).put(key, value, ttl, deadline);
  }
  bool add(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
           Instant deadline) override {
    return reached(key).add(key, value, ttl, deadline);
  }
  bool erase(std::string_view key, Instant deadline) override { return reached(key).erase(key, deadline); }
  std::size_t partOf(std::string_view key) const override {
    return key.starts_with("elsewhere") ? mostParts - 1 : 0;
  }

 private:
  ValueStore& reached(std::string_view key) {
    ++requests;
    if (key == wrongKey) throw ConfigError("the key is of the wrong type, says the test");
    if (down || (firstPartIsDown && partOf(key) == 0))
      throw StoreUnavailable("values are down, says the test");
    return *inner_;
  }
  const std::shared_ptr<ValueStore> inner_;
};

class CachedLoaderTest : public ManagerFixture {
 protected:
  using Value = std::optional<std::string>;

  CacheOptions cacheOptions() const {
    CacheOptions made;
    made.jitterPercent = 0;
    return made;
  }
  CachedLoader cache(const std::shared_ptr<LockManager>& locks, CacheOptions made,
                     CachedLoader::Loader loader) {
    return {values, locks, std::move(loader), std::move(made)};
  }
  ManagerOptions told(std::uint64_t randomSeed) {
    return heardBy(randomSeed, [this](const Event& event) {
      const std::lock_guard guard(mutex);
      heard.emplace_back(toString(event.kind));
    });
  }
  /// A loader that counts: "v1", "v2", …
  CachedLoader::Loader counting() {
    return [this](std::string_view) { return Value("v" + std::to_string(++loads)); };
  }
  /// Callers who wait for what another process loads, for two seconds each: the second one came 1.5 s later.
  std::pair<std::future<Value>, std::future<Value>> twoWaiters(CachedLoader& users) {
    const Instant asked = clock->now();
    auto first = std::async(std::launch::async, [&users] { return users.get("128"); });
    EXPECT_TRUE(clock->awaitWaiters(2 * managerThreads + 1));
    clock->advance(1500ms);
    auto second = std::async(std::launch::async, [&users] { return users.get("128"); });
    EXPECT_TRUE(clock->awaitWakeUpAt(asked + 3500ms));
    return {std::move(first), std::move(second)};
  }
  /// The result of a call that waits by the clock.
  Value after(std::future<Value>& call) {
    while (call.wait_for(1ms) != std::future_status::ready) clock->advance(10ms);
    return call.get();
  }
  int heardOf(const std::string& event) {
    const std::lock_guard guard(mutex);
    return static_cast<int>(std::count(heard.begin(), heard.end(), event));
  }

  std::mutex mutex;  // with what it guards, before the managers, which tell to their end
  std::vector<std::string> heard;
  const std::shared_ptr<FaultyValues> values =
      std::make_shared<FaultyValues>(std::make_shared<MemoryValues>(clock));
  const std::shared_ptr<LockManager> here = std::make_shared<LockManager>(network, told(seed + 2));
  const std::shared_ptr<LockManager> there = std::make_shared<LockManager>(store, told(seed + 3));
  std::atomic<int> loads = 0;
};

TEST_F(CachedLoaderTest, ACallGoesOnThoughItsLoaderDestroysTheObject) {
  std::optional<CachedLoader> users;
  const std::string loaded = "v";
  users.emplace(values, here, [&](std::string_view) {
    users.reset();
    return Value(loaded);
  });
  EXPECT_EQ(users->get("128"), "v");
  EXPECT_FALSE(users);
  EXPECT_EQ(cache(there, cacheOptions(), counting()).get("128"), "v") << "it was stored";
}

TEST_F(CachedLoaderTest, ALoaderThatAsksForItsOwnKeyGetsAnErrorInsteadOfAWait) {
  CachedLoader* users = nullptr;
  CachedLoader own = cache(here, cacheOptions(), [&](std::string_view key) {
    return users->get(key == "128" ? "129" : "128");  // by way of another key
  });
  users = &own;
  EXPECT_THROW(own.get("128"), std::logic_error);
  EXPECT_EQ(heardOf("load failed"), 2) << "of both keys";
}

TEST_F(CachedLoaderTest, LoadsOnceAndServesItForFreshForInOneRequestEach) {
  auto users = cache(here, cacheOptions(), counting());
  auto elsewhere = cache(there, cacheOptions(), counting());
  EXPECT_EQ(users.get("128"), "v1");
  values->requests = 0;
  EXPECT_EQ(users.get("128"), "v1");
  EXPECT_EQ(elsewhere.get("128"), "v1");
  EXPECT_EQ(values->requests, 2);
  clock->advance(1min - 1ms);
  EXPECT_EQ(users.get("128"), "v1");
  clock->advance(1ms);
  EXPECT_EQ(users.get("128"), "v2");
  EXPECT_EQ(users.get("129"), "v3");
}

TEST_F(CachedLoaderTest, EndsValuesEarlierByTheJitterThatItsRandomGives) {
  /// Numbers apart from the bytes of tokens.
  struct Apart final : Random {
    void fill(std::span<std::byte> out) override {
      (out.size() == sizeof(std::uint64_t) ? numbers : tokens).fill(out);
    }
    FakeRandom numbers{seed};
    FakeRandom tokens{seed + 2};
  };
  ManagerOptions drawing = told(seed + 2);
  drawing.environment.random = std::make_shared<Apart>();
  CacheOptions options = cacheOptions();
  options.freshFor = 10s;
  options.jitterPercent = 50;
  auto users = cache(std::make_shared<LockManager>(network, drawing), options, counting());
  FakeRandom same(seed);
  std::vector<std::chrono::milliseconds> kept;
  for (int i = 0; i < 20; ++i) {
    const std::string key = std::to_string(i);
    const std::chrono::milliseconds expected = 10s - std::chrono::milliseconds(same.upTo(5000));
    const auto value = users.get(key);
    EXPECT_GE(expected, 5s);
    clock->advance(expected - 1ms);
    EXPECT_EQ(users.get(key), value);
    clock->advance(1ms);
    EXPECT_NE(values->get(key + ":fresh", clock->now()), value);
    EXPECT_FALSE(values->get(key + ":fresh", clock->now()));
    kept.push_back(expected);
  }
  EXPECT_GT(*std::max_element(kept.begin(), kept.end()) - *std::min_element(kept.begin(), kept.end()), 1s);
}

TEST_F(CachedLoaderTest, ServesTheStaleValueWhileAnotherLoadsButNotAfterStaleFor) {
  CacheOptions options = cacheOptions();
  options.freshFor = 10s;
  options.staleFor = 20s;
  options.waitFor = 0ms;
  auto users = cache(here, options, counting());
  EXPECT_EQ(users.get("128"), "v1");
  const Lock loading = there->lock("128", {.ttl = 1h});
  clock->advance(10s);
  EXPECT_EQ(users.get("128"), "v1");
  EXPECT_EQ(heardOf("stale value served"), 1);
  clock->advance(20s - 1ms);
  EXPECT_EQ(users.get("128"), "v1");
  clock->advance(1ms);
  EXPECT_THROW(users.get("128"), LockTimeout);
  EXPECT_EQ(loads, 1);
}

TEST_F(CachedLoaderTest, OneCallerRebuildsWhileTheOthersOfItsProcessAreServedTheStaleValue) {
  CacheOptions options = cacheOptions();
  options.staleFor = 1h;
  std::promise<void> loading, leave;
  auto users = cache(here, options, [&](std::string_view) {
    if (++loads == 1) return Value("old");
    loading.set_value();
    leave.get_future().wait();
    return Value("new");
  });
  EXPECT_EQ(users.get("128"), "old");
  clock->advance(1min);
  auto rebuilding = std::async(std::launch::async, [&] { return users.get("128"); });
  loading.get_future().wait();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(users.get("128"), "old");
  leave.set_value();
  EXPECT_EQ(rebuilding.get(), "new");
  EXPECT_EQ(users.get("128"), "new");
  EXPECT_EQ(loads, 2);
}

TEST_F(CachedLoaderTest, ManyWhoFindNothingWaitForOneLoad) {
  CacheOptions options = cacheOptions();
  options.waitFor = 1h;
  std::promise<void> leave;
  auto users = cache(here, options, [&](std::string_view) {
    ++loads;
    leave.get_future().wait();
    return Value("v");
  });
  std::vector<std::future<Value>> callers;
  for (int i = 0; i < 16; ++i) {
    callers.push_back(std::async(std::launch::async, [&] { return users.get("128"); }));
  }
  ASSERT_TRUE(clock->awaitWaiters(managerThreads + 15));
  leave.set_value();
  for (auto& caller : callers) EXPECT_EQ(caller.get(), "v");
  EXPECT_EQ(loads, 1);
  EXPECT_EQ(network->calls(Call::acquire), 1) << "the others have not asked for the lock";
}

TEST_F(CachedLoaderTest, WaitsNoLongerThanWaitForForAnothersLoad) {
  CacheOptions options = cacheOptions();
  options.waitFor = 2s;
  std::promise<void> loading, leave;
  auto users = cache(here, options, [&](std::string_view) {
    loading.set_value();
    leave.get_future().wait();
    return Value("v");
  });
  auto slow = std::async(std::launch::async, [&] { return users.get("128"); });
  loading.get_future().wait();
  const Instant asked = clock->now();
  auto waiter = std::async(std::launch::async, [&] { return users.get("128"); });
  ASSERT_TRUE(clock->awaitWakeUpAt(asked + 2s));
  clock->advance(2s);
  EXPECT_THROW(waiter.get(), LockTimeout);
  leave.set_value();
  EXPECT_EQ(slow.get(), "v");
}

TEST_F(CachedLoaderTest, AWaiterWithTimeLeftDoesNotEndWithTheOneWhoAskedForTheLock) {
  CacheOptions options = cacheOptions();
  options.waitFor = 2s;
  auto users = cache(here, options, counting());
  Lock loading = there->lock("128", {.ttl = 1h});
  auto [first, second] = twoWaiters(users);
  clock->advance(500ms);
  EXPECT_THROW(after(first), LockTimeout);
  loading.release();
  EXPECT_EQ(after(second), "v1");
}

TEST_F(CachedLoaderTest, AWaiterWithTimeLeftDoesNotEndWithTheOneWhoCouldNotReachTheLocks) {
  CacheOptions options = cacheOptions();
  options.waitFor = 2s;
  options.whenDown = WhenDown::fail;
  auto users = cache(here, options, counting());
  const Lock other = there->lock("other", {.ttl = 1h});
  network->failAlways(Call::acquire, Fault::unavailable);
  auto [first, second] = twoWaiters(users);
  clock->advance(500ms);
  EXPECT_THROW(after(first), StoreUnavailable);
  network->heal();
  EXPECT_EQ(after(second), "v1");
}

TEST_F(CachedLoaderTest, AWaiterThatMustLoadAfterAllWaitsNoLongerThanWaitFor) {
  CacheOptions options = cacheOptions();
  options.waitFor = 2s;
  auto users = cache(here, options, counting());
  const Lock loading = there->lock("128", {.ttl = 1h});
  const Instant asked = clock->now();
  auto [first, second] = twoWaiters(users);
  EXPECT_THROW(after(first), LockTimeout);
  EXPECT_THROW(after(second), LockTimeout);
  EXPECT_LE(clock->now() - asked, 4s);
}

TEST_F(CachedLoaderTest, AValueIsAsOldAsItsLoad) {
  CacheOptions options = cacheOptions();
  options.negativeFor = 30s;
  options.lockTtl = options.loadFor = 10min;
  bool exists = true;
  auto users = cache(here, options, [&](std::string_view) {
    clock->advance(20s);
    ++loads;
    return exists ? Value("v" + std::to_string(loads)) : Value();
  });
  EXPECT_EQ(users.get("128"), "v1");
  clock->advance(40s - 1ms);
  EXPECT_EQ(users.get("128"), "v1");
  clock->advance(1ms);
  exists = false;
  EXPECT_EQ(users.get("128"), std::nullopt);
  clock->advance(10s - 1ms);
  EXPECT_EQ(users.get("128"), std::nullopt);
  EXPECT_EQ(loads, 2);
  clock->advance(1ms);
  exists = true;
  EXPECT_EQ(users.get("128"), "v3");
}

TEST_F(CachedLoaderTest, AValueWhoseLoadTookLongerThanFreshForIsOnlyServedStale) {
  CacheOptions options = cacheOptions();
  options.freshFor = 10s;
  options.staleFor = 20s;
  options.lockTtl = options.loadFor = 10min;
  auto users = cache(here, options, [&](std::string_view) {
    clock->advance(20s);
    return Value("v" + std::to_string(++loads));
  });
  EXPECT_EQ(users.get("128"), "v1");
  EXPECT_EQ(heardOf("not stored"), 1);
  EXPECT_FALSE(values->get("128:fresh", clock->now()));
  const Lock loading = there->lock("128", {.ttl = 1h});
  clock->advance(10s - 1ms);
  EXPECT_EQ(users.get("128"), "v1");
  clock->advance(1ms);
  EXPECT_FALSE(values->get("128:stale", clock->now()));
}

// On a cluster, it may be on a master that is down.
TEST_F(CachedLoaderTest, ACopyThatCannotBeStoredDoesNotKeepTheFreshValueFromBeingStored) {
  CacheOptions options = cacheOptions();
  options.staleFor = 1h;
  values->wrongKey = "128:stale";
  auto users = cache(here, options, counting());
  EXPECT_EQ(users.get("128"), "v1");
  EXPECT_EQ(heardOf("not stored"), 1) << "the copy";
  EXPECT_EQ(users.get("128"), "v1") << "from the store";
  EXPECT_EQ(heardOf("cache hit"), 1);
}

TEST_F(CachedLoaderTest, ACallerAfterInvalidateDoesNotShareAStaleValueThatWasReadBefore) {
  CacheOptions options = cacheOptions();
  options.staleFor = 1h;
  options.waitFor = 1h;
  auto users = cache(here, options, counting());
  auto elsewhere = cache(there, options, counting());
  EXPECT_EQ(users.get("128"), "v1");
  clock->advance(1min);
  std::optional<Lock> loading;
  std::future<Value> later;
  std::atomic<bool> isFirst = true;
  values->onGot = [&](std::string_view key) {
    if (key != "128:stale" || !isFirst.exchange(false)) return;
    elsewhere.invalidate("128");
    loading = there->lock("128", {.ttl = 2h});
    later = std::async(std::launch::async, [&] { return users.get("128"); });
    EXPECT_TRUE(clock->awaitWakeUpAt(clock->now() + 1h));
  };
  EXPECT_EQ(users.get("128"), "v1") << "it came before invalidate()";
  loading.reset();
  EXPECT_EQ(after(later), "v2");
}

TEST_F(CachedLoaderTest, OneThatWasMovedFromSaysSo) {
  auto users = cache(here, cacheOptions(), counting());
  auto moved = std::move(users);
  EXPECT_THROW(users.get("128"), std::logic_error);
  EXPECT_THROW(users.invalidate("128"), std::logic_error);
  users = std::move(moved);
  EXPECT_EQ(users.get("128"), "v1");
}

TEST_F(CachedLoaderTest, RemembersThatThereIsNothingForItsOwnTime) {
  CacheOptions options = cacheOptions();
  options.staleFor = 1h;
  options.negativeFor = 5s;
  options.waitFor = 0ms;
  bool exists = true;
  auto users = cache(here, options, [&](std::string_view) {
    ++loads;
    return exists ? Value("") : Value();
  });
  EXPECT_EQ(users.get("128"), "") << "an empty value is a value";
  exists = false;
  clock->advance(1min);
  EXPECT_EQ(users.get("128"), std::nullopt);
  clock->advance(5s - 1ms);
  EXPECT_EQ(users.get("128"), std::nullopt);
  EXPECT_EQ(loads, 2);
  clock->advance(1ms);
  const Lock loading = there->lock("128", {.ttl = 1h});
  EXPECT_THROW(users.get("128"), LockTimeout) << "the stale value must not come back";
}

TEST_F(CachedLoaderTest, AsksAgainForNothingWithoutNegativeCaching) {
  auto users = cache(here, cacheOptions(), [&](std::string_view) {
    ++loads;
    return Value();
  });
  EXPECT_EQ(users.get("128"), std::nullopt);
  EXPECT_EQ(users.get("128"), std::nullopt);
  EXPECT_EQ(loads, 2);
}

TEST_F(CachedLoaderTest, ALoaderThatThrowsIsCoveredByTheStaleValueOnly) {
  CacheOptions options = cacheOptions();
  options.staleFor = 10s;
  bool broken = false;
  auto users = cache(here, options, [&](std::string_view) {
    if (broken) throw std::runtime_error("the database is away");
    return Value("v");
  });
  EXPECT_EQ(users.get("128"), "v");
  broken = true;
  clock->advance(1min);
  EXPECT_EQ(users.get("128"), "v");
  EXPECT_EQ(heardOf("load failed"), 1);
  clock->advance(10s);
  EXPECT_THROW(users.get("128"), std::runtime_error);
  broken = false;
  EXPECT_EQ(users.get("128"), "v");
}

TEST_F(CachedLoaderTest, WithItsStoreDownItLoadsAndDoesNotAskTheStoreEachTime) {
  auto users = cache(here, cacheOptions(), counting());
  values->down = true;
  for (int i = 1; i <= 5; ++i) EXPECT_EQ(users.get("128"), "v" + std::to_string(i));
  EXPECT_EQ(values->requests, 1);
  values->down = false;
  clock->advance(2s);
  EXPECT_EQ(users.get("128"), "v6");
  EXPECT_EQ(users.get("128"), "v6");
}

TEST_F(CachedLoaderTest, APartOfItsStoreThatIsDownDoesNotKeepTheOthersFromIt) {
  auto users = cache(here, cacheOptions(), counting());
  EXPECT_EQ(users.get("elsewhere"), "v1");
  values->firstPartIsDown = true;
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(users.get("128"), "v1") << "loaded each time";
    EXPECT_EQ(users.get("elsewhere"), "v1");
  }
}

TEST_F(CachedLoaderTest, WithItsStoreDownItFailsWhereThatIsWanted) {
  CacheOptions options = cacheOptions();
  options.whenDown = WhenDown::fail;
  auto users = cache(here, options, counting());
  values->down = true;
  EXPECT_THROW(users.get("128"), StoreUnavailable);
  EXPECT_THROW(users.get("128"), StoreUnavailable);
  values->down = false;
  clock->advance(2s);
  network->fail(Call::acquire, {Fault::config});
  EXPECT_THROW(users.get("128"), ConfigError) << "locks count, too";
  EXPECT_EQ(loads, 0);
}

TEST_F(CachedLoaderTest, WithoutLocksItServesTheStaleValue) {
  CacheOptions options = cacheOptions();
  options.staleFor = 10s;
  auto users = cache(here, options, counting());
  EXPECT_EQ(users.get("128"), "v1");
  clock->advance(1min);
  network->fail(Call::acquire, {Fault::config, Fault::config});
  EXPECT_EQ(users.get("128"), "v1");
  clock->advance(10s);
  EXPECT_EQ(users.get("128"), "v2") << "loaded alone";
  EXPECT_EQ(heardOf("gave up"), 2);
  EXPECT_EQ(users.get("128"), "v3") << "and not stored";
}

TEST_F(CachedLoaderTest, ALoadThatLostItsLockDoesNotOverwriteAFresherValue) {
  CacheOptions options = cacheOptions();
  options.loadFor = 10s;
  options.lockTtl = 5s;
  options.staleFor = 1h;
  auto fast = cache(there, options, [](std::string_view) { return Value("fresher"); });
  auto slow = cache(here, options, [&](std::string_view) {
    clock->advance(20s);  // all leases end in it
    EXPECT_EQ(fast.get("128"), "fresher");
    return Value("older");
  });
  EXPECT_EQ(slow.get("128"), "older") << "it is what this caller's load has found";
  EXPECT_EQ(heardOf("not stored"), 1);
  EXPECT_EQ(slow.get("128"), "fresher");
  clock->advance(1min);
  const Lock loading = there->lock("128", {.ttl = 1h});
  EXPECT_EQ(slow.get("128"), "fresher") << "nor the stale copy";
}

TEST_F(CachedLoaderTest, AnInvalidatedValueIsNotServedAgainThoughAnOldLoadEndsLater) {
  CacheOptions options = cacheOptions();
  options.staleFor = 1h;
  options.waitFor = 1h;
  std::atomic<int> row = 1;
  std::promise<void> loading, leave;
  auto users = cache(here, options, [&](std::string_view) {
    const int read = row;
    if (++loads == 1) {
      loading.set_value();
      leave.get_future().wait();
    }
    return Value(std::to_string(read));
  });
  auto elsewhere =
      cache(there, options, [](std::string_view) -> Value { throw std::runtime_error("unused"); });
  auto old = std::async(std::launch::async, [&] { return users.get("128"); });
  loading.get_future().wait();
  row = 2;
  auto invalidated = std::async(std::launch::async, [&] { elsewhere.invalidate("128"); });
  EXPECT_EQ(invalidated.wait_for(50ms), std::future_status::timeout) << "the old load may still store";
  leave.set_value();
  EXPECT_EQ(old.get(), "1");
  invalidated.get();
  EXPECT_EQ(users.get("128"), "2");
}

TEST_F(CachedLoaderTest, ACallerAfterInvalidateDoesNotShareALoadFromBefore) {
  CacheOptions options = cacheOptions();
  options.loadFor = 10s;
  options.lockTtl = 5s;
  std::atomic<int> row = 1;
  std::promise<void> loading, leave;
  auto users = cache(here, options, [&](std::string_view) {
    const int read = row;
    if (++loads == 1) {
      loading.set_value();
      leave.get_future().wait();
    }
    return Value(std::to_string(read));
  });
  auto old = std::async(std::launch::async, [&] { return users.get("128"); });
  loading.get_future().wait();
  row = 2;
  clock->advance(20s);  // its lock is lost: invalidate() need not wait for it
  users.invalidate("128");
  EXPECT_EQ(users.get("128"), "2");
  leave.set_value();
  EXPECT_EQ(old.get(), "1");
  EXPECT_EQ(users.get("128"), "2");
}

TEST_F(CachedLoaderTest, ACallerAfterAnotherProcessInvalidatesDoesNotShareALoadFromBefore) {
  CacheOptions options = cacheOptions();
  options.loadFor = 10s;
  options.lockTtl = 5s;
  std::atomic<int> row = 1;
  std::promise<void> loading, leave;
  auto users = cache(here, options, [&](std::string_view) {
    const int read = row;
    if (++loads == 1) {
      loading.set_value();
      leave.get_future().wait();
    }
    return Value(std::to_string(read));
  });
  auto elsewhere = cache(there, options, counting());
  auto old = std::async(std::launch::async, [&] { return users.get("128"); });
  loading.get_future().wait();
  row = 2;
  clock->advance(20s);  // its lock is lost: the other process need not wait for it
  elsewhere.invalidate("128");
  auto later = std::async(std::launch::async, [&] { return users.get("128"); });
  EXPECT_EQ(later.wait_for(10s), std::future_status::ready) << "it waits for the old load";
  leave.set_value();
  EXPECT_EQ(later.get(), "2");
  EXPECT_EQ(old.get(), "1");
  EXPECT_EQ(users.get("128"), "2");
}

TEST_F(CachedLoaderTest, WithoutLocksCallersWaitForALoadFromBeforeAndShareTheNextOne) {
  CacheOptions options = cacheOptions();
  options.waitFor = 1h;
  std::atomic<int> row = 1;
  std::promise<void> loading, leave;
  auto users = cache(here, options, [&](std::string_view) {
    const int read = row;
    if (++loads == 1) {
      loading.set_value();
      leave.get_future().wait();
    }
    return Value(std::to_string(read));
  });
  auto elsewhere = cache(there, options, counting());
  network->failAlways(Call::acquire, Fault::config);
  auto old = std::async(std::launch::async, [&] { return users.get("128"); });
  loading.get_future().wait();
  row = 2;
  elsewhere.invalidate("128");  // it has no lock to wait for
  constexpr int callers = 5;
  std::vector<std::future<Value>> later;
  for (int caller = 0; caller < callers; ++caller) {
    later.push_back(std::async(std::launch::async, [&] { return users.get("128"); }));
  }
  ASSERT_TRUE(clock->awaitWaiters(2 * managerThreads + callers));
  leave.set_value();
  EXPECT_EQ(old.get(), "1");
  for (auto& each : later) EXPECT_EQ(each.get(), "2");
  EXPECT_LE(loads, 1 + callers);
}

TEST_F(CachedLoaderTest, AnErrorOfOneKeyDoesNotKeepOthersFromTheCache) {
  values->wrongKey = "bad:fresh";
  auto users = cache(here, cacheOptions(), counting());
  EXPECT_EQ(users.get("good"), "v1");
  for (int i = 0; i < 5; ++i) {
    EXPECT_NE(users.get("bad"), "v1") << "loaded each time";
    EXPECT_EQ(users.get("good"), "v1");
  }
}

TEST_F(CachedLoaderTest, AForkedChildIsRefusedByItAndByValuesInMemory) {
  auto users = cache(here, cacheOptions(), counting());
  MemoryValues plain(clock);
  const pid_t child = ::fork();
  if (child == 0) {
    int refused = 0;
    const auto expectRefusal = [&](auto&& call) {
      try {
        call();
      } catch (const ForkedError&) {
        ++refused;
      }
    };
    expectRefusal([&] { (void)users.get("128"); });
    expectRefusal([&] { users.invalidate("128"); });
    expectRefusal([&] { (void)plain.get("k", Instant::max()); });
    expectRefusal([&] { plain.put("k", "v", 1s, Instant::max()); });
    expectRefusal([&] { (void)plain.add("k", "v", 1s, Instant::max()); });
    expectRefusal([&] { (void)plain.erase("k", Instant::max()); });
    users = cache(here, cacheOptions(), counting());  // as the error's text says
    ::_exit(refused);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 6);
}

TEST_F(CachedLoaderTest, WhatIsNoneOfItsOwnCountsAsAbsent) {
  auto users = cache(here, cacheOptions(), counting());
  int expected = 0;
  for (const char* foreign : {"", "x", "-x", "\x01v"}) {
    values->put("128:fresh", foreign, 1h, clock->now());
    EXPECT_EQ(users.get("128"), "v" + std::to_string(++expected));
  }
}

TEST_F(CachedLoaderTest, NamespacesAreApart) {
  CacheOptions options = cacheOptions();
  options.keyNamespace = "users";
  auto users = cache(here, options, counting());
  options.keyNamespace = "orders";
  auto orders = cache(here, options, counting());
  EXPECT_EQ(users.get("128"), "v1");
  EXPECT_EQ(orders.get("128"), "v2");
  users.invalidate("128");
  EXPECT_EQ(orders.get("128"), "v2");
  EXPECT_EQ(users.get("128"), "v3");
}

TEST_F(CachedLoaderTest, NamesWhatIsOutOfRange) {
  const auto messageOf = [&](auto change) -> std::string {
    CacheOptions bad = cacheOptions();
    change(bad);
    try {
      cache(here, bad, counting());
    } catch (const std::exception& error) {
      return error.what();
    }
    return "nothing thrown";
  };
  EXPECT_EQ(messageOf([](auto& o) { o.freshFor = 0ms; }), "freshFor is 0s: it must be 1ms to 720h");
  EXPECT_EQ(messageOf([](auto& o) { o.staleFor = -1ms; }), "staleFor is -1ms: it must be 0s to 720h");
  EXPECT_EQ(messageOf([](auto& o) { o.waitFor = 25h; }), "waitFor is 25h: it must be 0s to 24h");
  EXPECT_NE(messageOf([](auto& o) { o.waitFor = forever; }), "nothing thrown");
  EXPECT_EQ(messageOf([](auto& o) { o.jitterPercent = 91; }), "jitterPercent is 91: 0 to 90 are allowed");
  EXPECT_EQ(messageOf([](auto& o) { o.loadFor = 2h; }), "loadFor is 2h: it must be 10ms to 1h");
  EXPECT_NE(messageOf([](auto& o) { o.keyNamespace = "a b"; }), "nothing thrown");
  auto users = cache(here, cacheOptions(), counting());
  EXPECT_THROW(users.get(""), std::invalid_argument);
  EXPECT_THROW(users.get(std::string(507, 'k')), std::invalid_argument);
  EXPECT_EQ(users.get(std::string(506, 'k')), "v1");
  EXPECT_EQ(values->requests, 1 + 1 + 1) << "nothing was sent for the bad ones";
}

}  // namespace
}  // namespace lockkeeper::test
