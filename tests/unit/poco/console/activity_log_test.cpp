#include "console/activity_log.h"

#include <Poco/JSON/Array.h>
#include <Poco/JSON/Object.h>
#include <Poco/JSON/Parser.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "lockkeeper/poco/console/recent_activity.h"
#include "metrics/tell_everything.h"

namespace lockkeeper::poco {
namespace {

using namespace std::chrono_literals;
using Poco::JSON::Array;
using Poco::JSON::Object;

const KeyScope all{};

Object::Ptr told(const ActivityLog& log, const std::string& key, Instant now, const KeyScope& scope = all) {
  return Poco::JSON::Parser().parse(log.json(scope, key, now)).extract<Object::Ptr>();
}

Event waited(std::string_view key, Instant now, std::chrono::nanoseconds time,
             EventKind kind = EventKind::acquired) {
  return {.kind = kind, .key = key, .began = now - time, .ended = now};
}

TEST(ActivityLog, KeepsTheLastEntriesOfTheKeysThatChangedLast) {
  ActivityLog log;
  const Instant now{1h};
  for (int i = 0; i < 2000; ++i) log.on(waited("order:" + std::to_string(i), now, 1ms));
  for (int i = 0; i < 100; ++i) log.on(waited("busy", now + i * 1s, i * 1ms));
  EXPECT_EQ(told(log, "order:0", now)->getArray("timeline")->size(), 0U);
  EXPECT_EQ(told(log, "order:1999", now)->getArray("timeline")->size(), 1U);
  const auto busy = told(log, "busy", now)->getArray("timeline");
  EXPECT_EQ(busy->size(), 32U);
  EXPECT_EQ(busy->getArray(31)->getElement<int>(5), 99) << "the latest comes last";
}

TEST(ActivityLog, AKeyThatIsWaitedForLongStaysHoweverManyOthersComeAndGo) {
  ActivityLog log;
  Instant now{1h};
  log.on(waited("hot", now, 3s));
  log.on(waited("hot", now, 2s, EventKind::timedOut));
  for (int i = 0; i < 2000; ++i) log.on(waited("order:" + std::to_string(i), now, 2ms));
  const auto hottest = told(log, "", now)->getArray("hottest");
  EXPECT_EQ(hottest->size(), 20U);
  EXPECT_EQ(hottest->getArray(0)->getElement<std::string>(0), "hot");
  EXPECT_EQ(hottest->getArray(0)->getElement<int>(1), 5000);
  EXPECT_EQ(hottest->getArray(0)->getElement<int>(2), 2) << "calls";
  EXPECT_EQ(hottest->getArray(0)->getElement<int>(3), 1) << "in vain";
  now += 11min;
  EXPECT_EQ(told(log, "", now)->getArray("hottest")->size(), 0U) << "that was long ago";
}

TEST(ActivityLog, ALossIsNotForgottenForWhatHappensToOtherKeys) {
  ActivityLog log;
  const Instant now{1h};
  log.on(waited("stuck", now, 30s, EventKind::lost));
  for (int i = 0; i < 2000; ++i)
    log.on(waited("order:" + std::to_string(i), now + 1s, 1s, EventKind::released));
  const auto lost = told(log, "", now + 1s)->getArray("lost");
  ASSERT_EQ(lost->size(), 1U);
  EXPECT_EQ(lost->getArray(0)->getElement<std::string>(0), "stuck");
  EXPECT_EQ(lost->getArray(0)->getArray(1)->getElement<std::string>(2), "lost");
  for (int i = 0; i < 100; ++i) log.on(waited(std::to_string(i), now, 1s, EventKind::lost));
  const auto many = told(log, "", now)->getArray("lost");
  EXPECT_EQ(many->size(), 50U);
  EXPECT_EQ(many->getArray(0)->getElement<std::string>(0), "99") << "the latest comes first";
}

TEST(ActivityLog, ShowsOnlyTheKeysOfItsConsole) {
  ActivityLog log;
  const Instant now{1h};
  log.on(waited("shop:order:1", now, 1s));
  log.on(waited("bank:account:1", now, 1s));
  log.on(waited("bank:account:1", now, 1s, EventKind::lost));
  const auto shown = told(log, "order:1", now, {.prefix = "shop:", .hidden = 5});
  EXPECT_EQ(shown->getArray("timeline")->size(), 1U);
  EXPECT_EQ(shown->getArray("latest")->size(), 1U);
  EXPECT_EQ(shown->getArray("lost")->size(), 0U);
  ASSERT_EQ(shown->getArray("hottest")->size(), 1U);
  EXPECT_EQ(shown->getArray("hottest")->getArray(0)->getElement<std::string>(0), "order:1");
}

TEST(ActivityLog, TellsWhatBecameOfTasksElectionsMigrationsAndNodes) {
  ActivityLog log;
  const Instant now{1h};
  log.on({.kind = EventKind::taskEnded,
          .key = "report",
          .ended = now,
          .text = "no disk",
          .task = TaskOutcome::threw});
  log.on({.kind = EventKind::taskEnded, .key = "report", .ended = now + 1s, .task = TaskOutcome::skipped});
  log.on({.kind = EventKind::taskPlanned, .key = "report", .ended = now + 1s, .remaining = 1min});
  log.on({.kind = EventKind::termBegan, .key = "chief", .ended = now});
  log.on({.kind = EventKind::termEnded, .key = "chief", .ended = now + 2s});
  log.on({.kind = EventKind::phaseChanged, .key = "shop", .ended = now, .text = "* = both"});
  log.on({.kind = EventKind::nodeAsked, .store = "redis://a", .ended = now, .node = NodeOutcome::failed});
  log.on(
      {.kind = EventKind::nodeAsked, .store = "redis://a", .ended = now + 1s, .node = NodeOutcome::agreed});
  const auto at = [](Instant when) { return std::to_string(inMilliseconds(when)); };
  const std::string text = log.json(all, "", now + 2s);
  EXPECT_NE(text.find(R"(["report",)" + at(now) + R"(,"threw","no disk",)" + at(now + 61s) + ",1,1,0]"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"(["chief",0,)" + at(now + 2s) + ",1]"), std::string::npos) << text;
  EXPECT_NE(text.find(R"(["shop","* = both",)" + at(now) + "]"), std::string::npos) << text;
  EXPECT_NE(text.find(R"(["redis:\/\/a",1,)" + at(now + 1s) + R"(,1,"failed"])"), std::string::npos) << text;
}

TEST(ActivityLog, EveryEventLeavesWellFormedJson) {
  const auto log = std::make_shared<RecentActivity>();
  Teller(log).everything();
  ActivityLog bytes;
  bytes.on(waited("\xff\"\\\n\x01<", Instant{1h}, 1s));
  const auto latest = told(bytes, "", Instant{1h})->getArray("latest");
  EXPECT_EQ(latest->getArray(0)->getElement<std::string>(0), jsonText("\xff\"\\\n\x01<"));
}

}  // namespace
}  // namespace lockkeeper::poco
