#include "lockkeeper/schedule/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <string>
#include <vector>

#include "moment.h"
#include "refusal.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::sys_seconds;
using ::testing::ElementsAre;

std::vector<std::string> ticks(const Schedule& schedule, const char* after, int count) {
  std::vector<std::string> found;
  sys_seconds tick = moment(after);
  while (count-- > 0) found.push_back(text(tick = schedule.next(tick)));
  return found;
}

std::vector<std::string> berlin(const char* cron, const char* after, int count) {
  return ticks(Schedule::cron(cron, TimeZone::named("Europe/Berlin")), after, count);
}

std::string next(const char* cron, const char* after) {
  return ticks(Schedule::cron(cron), after, 1).front();
}

TEST(ScheduleTest, ReadsListsRangesStepsAndNames) {
  const char* const friday = "2026-01-02 10:07:30";
  EXPECT_EQ(next("* * * * *", friday), "2026-01-02 10:08:00");
  EXPECT_EQ(next("*/15 * * * *", friday), "2026-01-02 10:15:00");
  EXPECT_EQ(next("5,7,59 * * * *", friday), "2026-01-02 10:59:00");
  EXPECT_EQ(next("0-6,8-10 * * * *", friday), "2026-01-02 10:08:00");
  EXPECT_EQ(next("1-30/9 10 * * *", friday), "2026-01-02 10:10:00");
  EXPECT_EQ(next("30 2 * * *", friday), "2026-01-03 02:30:00");
  EXPECT_EQ(next("0 0 * feb-Apr/2 *", friday), "2026-02-01 00:00:00");
  EXPECT_EQ(next("0 9 * * MON-thu", friday), "2026-01-05 09:00:00");
  EXPECT_EQ(next("0 9 * * 7", friday), "2026-01-04 09:00:00") << "Sunday";
  EXPECT_EQ(next("0 9 * * 0", friday), "2026-01-04 09:00:00") << "Sunday";
  EXPECT_EQ(next("0 9 * * 5-7", friday), "2026-01-03 09:00:00");
  EXPECT_EQ(next("0 0 29 2 *", friday), "2028-02-29 00:00:00");
  EXPECT_EQ(next("0 0 29 2 *", "2096-03-01 00:00:00"), "2104-02-29 00:00:00") << "2100 is no leap year";
  EXPECT_EQ(next("  0\t0  1 1 * ", friday), "2027-01-01 00:00:00");
}

TEST(ScheduleTest, ReadsTheWordsForCommonOnes) {
  const char* const friday = "2026-01-02 10:07:30";
  EXPECT_EQ(next("@hourly", friday), "2026-01-02 11:00:00");
  EXPECT_EQ(next("@daily", friday), "2026-01-03 00:00:00");
  EXPECT_EQ(next("@weekly", friday), "2026-01-04 00:00:00");
  EXPECT_EQ(next("@monthly", friday), "2026-02-01 00:00:00");
  EXPECT_EQ(next("@yearly", friday), "2027-01-01 00:00:00");
}

TEST(ScheduleTest, ADayOfTheMonthOrOfTheWeekIsEnoughUnlessOneFieldBeginsWithAStar) {
  const auto both = Schedule::cron("0 0 13 * FRI");
  EXPECT_THAT(ticks(both, "2026-02-01 00:00:00", 4),
              ElementsAre("2026-02-06 00:00:00", "2026-02-13 00:00:00", "2026-02-20 00:00:00",
                          "2026-02-27 00:00:00"));
  EXPECT_EQ(next("0 0 13 * FRI", "2026-04-10 00:00:00"), "2026-04-13 00:00:00") << "a Monday";
  EXPECT_EQ(next("0 0 */2 * MON", "2026-02-02 00:00:00"), "2026-02-09 00:00:00") << "odd, and a Monday";
  EXPECT_EQ(next("0 0 31 * *", "2026-01-31 00:00:00"), "2026-03-31 00:00:00");
}

TEST(ScheduleTest, RefusesWhatIsNoExpressionAndSaysWhatIsAllowed) {
  const auto refused = [](const char* cron) { return refusalOf([&] { (void)Schedule::cron(cron); }); };
  const std::string lists =
      ", ranges such as 2-5 and steps such as */5 or 2-10/3 are allowed, and lists of these with ','";
  EXPECT_EQ(refused("61 * * * *"),
            "'61 * * * *' is not a cron expression: the minute is '61': 0 to 59" + lists);
  EXPECT_EQ(
      refused("0 0 * * MOO"),
      "'0 0 * * MOO' is not a cron expression: the day of the week is 'MOO': 0 to 7, SUN to SAT" + lists);
  EXPECT_EQ(refused("30 2 31 2 *"),
            "'30 2 31 2 *' is not a cron expression: it never comes: no month that it names has such a day");
  EXPECT_EQ(refused("0 0 31 4,6,9,11 *").find("it never comes") == std::string::npos, false);
  EXPECT_EQ(refused("0 0 31 2 MON"), "accepted") << "each Monday of February";
  for (const char* cron : {"", "@reboot", "* * * *", "* * * * * *"}) {
    EXPECT_EQ(
        refused(cron),
        "'" + std::string(cron) +
            "' is not a cron expression: five fields are allowed (minute, hour, day of the month, month, day "
            "of the week), or @hourly, @daily, @weekly, @monthly, @yearly");
  }
  for (const char* cron :
       {"60 * * * *",      "* 24 * * *",          "* * 0 * *",    "* * 32 * *",    "* * * 0 *",
        "* * * 13 *",      "* * * * 8",           "-1 * * * *",   "+1 * * * *",    "1- * * * *",
        "-5 * * * *",      "5-1 * * * *",         "1,,2 * * * *", ", * * * *",     "*/0 * * * *",
        "*/60 * * * *",    "*/ * * * *",          "5/10 * * * *", "1-2-3 * * * *", "*-5 * * * *",
        "** * * * *",      "1.5 * * * *",         "* * L * *",    "* * ? * *",     "* * * * 5#2",
        "* * * JANUARY *", "99999999999 * * * *", "JAN * * * *"}) {
    EXPECT_NE(refused(cron).find(" are allowed, and lists"), std::string::npos)
        << cron << ": " << refused(cron);
  }
}

TEST(ScheduleTest, EveryIsAlignedToTheClockSince1970) {
  EXPECT_THAT(ticks(Schedule::every(1h), "2026-01-02 10:07:30", 2),
              ElementsAre("2026-01-02 11:00:00", "2026-01-02 12:00:00"));
  EXPECT_THAT(ticks(Schedule::every(7s), "1970-01-01 00:00:00", 2),
              ElementsAre("1970-01-01 00:00:07", "1970-01-01 00:00:14"));
  EXPECT_THAT(ticks(Schedule::every(7s), "1969-12-31 23:59:52", 3),
              ElementsAre("1969-12-31 23:59:53", "1970-01-01 00:00:00", "1970-01-01 00:00:07"));
  EXPECT_EQ(refusalOf([] { (void)Schedule::every(999ms); }),
            "the period of a schedule is 999ms: it must be 1s to 8784h");
  EXPECT_EQ(refusalOf([] { (void)Schedule::every(1500ms); }),
            "the period of a schedule is 1500ms: whole seconds are allowed");
}

TEST(ScheduleTest, ATimeThatClocksSkipComesAtTheFirstMomentAfterTheGap) {
  EXPECT_THAT(berlin("30 2 * * *", "2026-03-27 12:00:00", 3),
              ElementsAre("2026-03-28 01:30:00", "2026-03-29 01:00:00", "2026-03-30 00:30:00"));
  EXPECT_THAT(
      berlin("*/20 2,3 29 3 *", "2026-03-28 12:00:00", 4),
      ElementsAre("2026-03-29 01:00:00", "2026-03-29 01:20:00", "2026-03-29 01:40:00", "2027-03-29 00:00:00"))
      << "all that was skipped comes together, with what the clocks show then";
}

TEST(ScheduleTest, ATimeThatComesTwiceComesTheFirstTime) {
  EXPECT_THAT(berlin("30 2 * * *", "2026-10-23 12:00:00", 3),
              ElementsAre("2026-10-24 00:30:00", "2026-10-25 00:30:00", "2026-10-26 01:30:00"));
  EXPECT_EQ(berlin("30 2 * * *", "2026-10-25 01:10:00", 1).front(), "2026-10-26 01:30:00")
      << "asked between the two";
  EXPECT_THAT(berlin("30 * * * *", "2026-10-25 00:00:00", 2),
              ElementsAre("2026-10-25 00:30:00", "2026-10-25 02:30:00"));
}

TEST(ScheduleTest, ADayThatASkippedDateLineTookAwayComesAfterIt) {
  // Samoa had no December 30th 2011.
  const auto schedule = Schedule::cron("0 12 30 12 *", TimeZone::named("Pacific/Apia"));
  EXPECT_THAT(ticks(schedule, "2011-01-01 00:00:00", 2),
              ElementsAre("2011-12-30 10:00:00", "2012-12-29 22:00:00"));
}

/// The C library's idea of a zone, which is what next() is compared with. Sets TZ, so it is for one thread.
class LibraryZone {
 public:
  explicit LibraryZone(const char* name) {
    ::setenv("TZ", name, 1);
    ::tzset();
  }
  ~LibraryZone() {
    ::unsetenv("TZ");
    ::tzset();
  }
  static std::int64_t offset(std::int64_t when) {
    const time_t seconds = when;
    tm fields{};
    ::localtime_r(&seconds, &fields);
    return fields.tm_gmtoff;
  }
};

struct Walk {
  const char* zone;
  const char* begin;
  const char* cron;
  bool (*names)(const tm& local);
};

/// Goes through three years minute by minute. A minute is a tick when the clocks show, for the first time, a
/// time that `names` or skip one.
std::vector<sys_seconds> walked(const Walk& walk, sys_seconds end) {
  const LibraryZone zone(walk.zone);
  std::vector<sys_seconds> found;
  std::int64_t latest = 0;
  std::int64_t offset = 0;
  tm local{};
  const auto begin = moment(walk.begin).time_since_epoch().count();
  const auto warmUp = begin - 7 * 86400;
  for (std::int64_t now = warmUp; now < end.time_since_epoch().count(); now += 60) {
    if (now % 900 == 0) offset = LibraryZone::offset(now);  // clocks are set at quarters of an hour only
    bool due = false;
    if (now == warmUp) latest = now + offset - 60;
    while (latest < now + offset) {
      latest += 60;
      if (latest % 3600 == 0 || local.tm_year == 0) ::gmtime_r(&latest, &local);
      local.tm_min = static_cast<int>(latest / 60 % 60);
      due = due || walk.names(local);
    }
    if (due && now >= begin) found.emplace_back(std::chrono::seconds{now});
  }
  return found;
}

TEST(ScheduleTest, AgreesWithAWalkThroughEachMinuteOfThreeYears) {
  const auto nightly = [](const tm& t) { return t.tm_hour >= 1 && t.tm_hour <= 3 && t.tm_min % 20 == 0; };
  const auto half = [](const tm& t) { return t.tm_hour == 2 && t.tm_min == 30; };
  const auto days = [](const tm& t) {
    return t.tm_hour % 6 == 0 && t.tm_min == 5 && (t.tm_mday == 13 || t.tm_mday == 29 || t.tm_wday == 0);
  };
  const auto summer = [](const tm& t) {
    return (t.tm_mon == 2 || t.tm_mon >= 9) && t.tm_wday % 6 == 0 && t.tm_min % 30 == 7;
  };
  for (const Walk& walk :
       {Walk{"Europe/Berlin", "2024-01-01 00:00:00", "*/20 1-3 * * *", nightly},
        Walk{"America/New_York", "2025-01-01 00:00:00", "5 */6 13,29 * SUN", days},
        Walk{"Australia/Lord_Howe", "2039-01-01 00:00:00", "*/20 1-3 * * *", nightly},
        Walk{"Africa/Casablanca", "2024-01-01 00:00:00", "30 2 * * *", half},
        Walk{"Pacific/Apia", "2010-01-01 00:00:00", "7-59/30 * * 3,OCT-DEC SAT,SUN", summer}}) {
    SCOPED_TRACE(walk.zone);
    const sys_seconds end = moment(walk.begin) + std::chrono::days{3 * 365};
    const auto expected = walked(walk, end);
    ASSERT_GT(expected.size(), 500U);
    const auto schedule = Schedule::cron(walk.cron, TimeZone::named(walk.zone));
    sys_seconds tick = moment(walk.begin) - 1s;
    for (const sys_seconds each : expected) {
      // From the tick before, and from a moment in between.
      ASSERT_EQ(text(schedule.next(tick)), text(each)) << "after " << text(tick);
      ASSERT_EQ(text(schedule.next(tick + (each - tick) / 2)), text(each)) << "after half of it";
      tick = each;
    }
    EXPECT_GE(schedule.next(tick), end);
  }
}

}  // namespace
}  // namespace lockkeeper::test
