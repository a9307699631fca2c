#include <algorithm>

#include "lockkeeper/memory/memory_driver.h"
#include "migration_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

/// What every store that keeps notices must do.
class Board : public ::testing::TestWithParam<bool> {
 protected:
  Board() {
    if (GetParam()) {
      redis_ = std::make_unique<RedisServer>();
      store = openBoard(redis_->uri());
    } else {
      store = std::make_shared<MemoryDriver>();
    }
  }

  static Instant soon() { return systemClock()->now() + 10s; }
  static std::optional<Notice> named(const std::vector<Notice>& all, const std::string& name) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Notice& each) { return each.name == name; });
    return found == all.end() ? std::nullopt : std::optional(*found);
  }

  std::unique_ptr<RedisServer> redis_;
  std::shared_ptr<Noticeboard> store;
};

TEST_P(Board, ShowsWhatWasPinnedToWhoeverLooks) {
  const std::string odd("line\nline\0% end ", 16);
  EXPECT_EQ(store->pin("b", "first", "one", std::nullopt, soon()).size(), 1U);
  const auto all = store->pin("b", "second", odd, 1min, soon());
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(named(all, "first")->text, "one");
  EXPECT_EQ(named(all, "second")->text, odd);
  EXPECT_EQ(store->notices("b", soon()).size(), 2U);
  EXPECT_TRUE(store->notices("another", soon()).empty());
}

TEST_P(Board, TellsHowOldANoticeIs) {
  store->pin("b", "n", "one", std::nullopt, soon());
  ASSERT_TRUE(waitUntil([&] { return named(store->notices("b", soon()), "n")->age >= 50ms; }));
  EXPECT_LT(named(store->pin("b", "n", "one", std::nullopt, soon()), "n")->age, 50ms) << "pinned anew";
}

TEST_P(Board, DropsANoticeWhenItsTimeIsOver) {
  store->pin("b", "short", "one", 100ms, soon());
  store->pin("b", "long", "one", std::nullopt, soon());
  EXPECT_TRUE(waitUntil([&] { return store->notices("b", soon()).size() == 1; }));
  EXPECT_TRUE(named(store->notices("b", soon()), "long"));
}

TEST_P(Board, ReplacesOnlyWhatIsExpected) {
  EXPECT_FALSE(store->replace("b", "n", "one", "two", soon()));
  EXPECT_TRUE(store->replace("b", "n", std::nullopt, "one", soon()));
  EXPECT_FALSE(store->replace("b", "n", std::nullopt, "two", soon()));
  EXPECT_FALSE(store->replace("b", "n", "zero", "two", soon()));
  EXPECT_TRUE(store->replace("b", "n", "one", "two", soon()));
  EXPECT_EQ(named(store->notices("b", soon()), "n")->text, "two");
}

TEST_P(Board, TakesNoticesDown) {
  store->pin("b", "n", "one", std::nullopt, soon());
  store->unpin("b", "n", soon());
  store->unpin("b", "n", soon());
  EXPECT_TRUE(store->notices("b", soon()).empty());
}

TEST_P(Board, IsNoLock) {
  store->pin("b", "n", "one", std::nullopt, soon());
  auto& locks = dynamic_cast<Browsable&>(*store);
  int listed = 0;
  locks.list(
      "", [&](std::string_view, const Holder&) { return ++listed < 10; }, soon());
  EXPECT_EQ(listed, 0);
}

INSTANTIATE_TEST_SUITE_P(Stores, Board, ::testing::Bool(),
                         [](const auto& of) { return of.param ? "Redis" : "Memory"; });

}  // namespace
}  // namespace lockkeeper::test
