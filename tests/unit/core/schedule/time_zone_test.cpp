#include "lockkeeper/schedule/time_zone.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "moment.h"
#include "refusal.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

seconds offset(const TimeZone& zone, const char* when) { return zone.spanAt(moment(when)).offset; }

std::string bigEndian(std::int64_t number, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    text.push_back(static_cast<char>(number >> shift));
  return text;
}

struct Change {
  std::int64_t at;
  char type;
};

/// A TZif file of version 2: an empty block of version 1, then two types of offset, UTC and an hour ahead.
std::string zoneFile(const std::string& rule, const std::vector<Change>& changes = {}) {
  const auto header = [](std::size_t changeCount, int types, int names) {
    const auto count = static_cast<std::int64_t>(changeCount);
    return "TZif2" + std::string(15, '\0') + bigEndian(0, 4) + bigEndian(0, 4) + bigEndian(0, 4) +
           bigEndian(count, 4) + bigEndian(types, 4) + bigEndian(names, 4);
  };
  std::string file =
      header(0, 1, 1) + std::string(6, '\0') + std::string(1, '\0') + header(changes.size(), 2, 4);
  for (const Change& change : changes) file += bigEndian(change.at, 8);
  for (const Change& change : changes) file += change.type;
  file += bigEndian(0, 4) + std::string(2, '\0') + bigEndian(3600, 4) + std::string(2, '\0');
  return file + std::string("ABC\0", 4) + "\n" + rule + "\n";
}

TimeZone ruled(const std::string& rule) { return TimeZone::fromBytes("Test/Zone", zoneFile(rule)); }

std::string refusal(const std::string& name, const std::string& bytes) {
  return refusalOf([&] { (void)TimeZone::fromBytes(name, bytes); });
}

TEST(TimeZoneTest, UtcNeedsNoFileAndNeverChanges) {
  EXPECT_EQ(TimeZone().name(), "UTC");
  EXPECT_EQ(TimeZone::named("UTC").name(), "UTC");
  EXPECT_EQ(offset(TimeZone(), "2026-07-01 00:00:00"), 0s);
}

TEST(TimeZoneTest, KnowsWhenClocksAreSetInThePastAndLongAfterTheLastChangeOfItsFile) {
  const TimeZone berlin = TimeZone::named("Europe/Berlin");
  EXPECT_EQ(berlin.name(), "Europe/Berlin");
  EXPECT_EQ(offset(berlin, "1880-01-01 00:00:00"), 53min + 28s) << "local mean time";
  EXPECT_EQ(offset(berlin, "1945-06-01 00:00:00"), 3h) << "double summer time";
  EXPECT_EQ(offset(berlin, "2026-03-29 00:59:59"), 1h);
  EXPECT_EQ(offset(berlin, "2026-03-29 01:00:00"), 2h);
  const auto summer = berlin.spanAt(moment("2026-07-01 00:00:00"));
  EXPECT_EQ(summer.begin, moment("2026-03-29 01:00:00"));
  EXPECT_EQ(summer.end, moment("2026-10-25 01:00:00"));
  const auto later = berlin.spanAt(moment("2101-12-31 00:00:00"));
  EXPECT_EQ(later.begin, moment("2101-10-30 01:00:00"));
  EXPECT_EQ(later.end, moment("2102-03-26 01:00:00"));
  EXPECT_EQ(later.offset, 1h);
}

TEST(TimeZoneTest, UnderstandsEachKindOfRule) {
  const TimeZone south = ruled("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0");  // Lord Howe
  EXPECT_EQ(offset(south, "2030-01-01 00:00:00"), 11h);
  EXPECT_EQ(offset(south, "2030-07-01 00:00:00"), 10h + 30min);
  EXPECT_EQ(south.spanAt(moment("2030-01-01 00:00:00")).end, moment("2030-04-06 15:00:00"));

  const TimeZone dublin = ruled("IST-1GMT0,M10.5.0,M3.5.0/1");  // its winter is the time that is set
  EXPECT_EQ(offset(dublin, "2030-07-01 00:00:00"), 1h);
  EXPECT_EQ(offset(dublin, "2030-01-01 00:00:00"), 0h);

  const TimeZone gaza = ruled("EET-2EEST,M3.4.4/50,M10.4.4/50");  // two days after a Thursday
  EXPECT_EQ(gaza.spanAt(moment("2030-07-01 00:00:00")).begin, moment("2030-03-30 00:00:00"));

  const TimeZone nuuk = ruled("<-02>2<-01>,M3.5.0/-1,M10.5.0/0");  // an hour before a Sunday
  EXPECT_EQ(nuuk.spanAt(moment("2030-07-01 00:00:00")).begin, moment("2030-03-31 01:00:00"));

  const TimeZone julian = ruled("AAA0BBB,J60/0,J300/0");  // March 1st, in leap years, too
  EXPECT_EQ(julian.spanAt(moment("2028-07-01 00:00:00")).begin, moment("2028-03-01 00:00:00"));
  EXPECT_EQ(julian.spanAt(moment("2027-07-01 00:00:00")).begin, moment("2027-03-01 00:00:00"));
  const TimeZone zeroBased = ruled("AAA0BBB,59/0,299/0");  // in leap years, February 29th
  EXPECT_EQ(zeroBased.spanAt(moment("2028-07-01 00:00:00")).begin, moment("2028-02-29 00:00:00"));
  EXPECT_EQ(zeroBased.spanAt(moment("2027-07-01 00:00:00")).begin, moment("2027-03-01 00:00:00"));

  const TimeZone always = ruled("XXX3EDT4,0/0,J365/23");  // as in RFC 8536: daylight-saving time all the year
  for (const char* when :
       {"2030-01-01 02:59:59", "2030-01-01 03:00:00", "2030-01-01 04:00:00", "2030-07-01 00:00:00"}) {
    EXPECT_EQ(offset(always, when), -4h) << when;
  }
}

TEST(TimeZoneTest, FollowsTheRuleOnlyAfterTheLastChange) {
  const std::int64_t last = moment("2030-05-01 00:00:00").time_since_epoch().count();
  const TimeZone zone = TimeZone::fromBytes("T", zoneFile("AAA0BBB,M3.5.0,M10.5.0", {{0, 1}, {last, 1}}));
  EXPECT_EQ(offset(zone, "1969-07-01 00:00:00"), 0h);
  EXPECT_EQ(offset(zone, "2029-12-01 00:00:00"), 1h) << "as the file lists it, whatever the rule says";
  EXPECT_EQ(zone.spanAt(moment("2030-06-01 00:00:00")).begin, moment("2030-05-01 00:00:00"));
  EXPECT_EQ(offset(zone, "2030-12-01 00:00:00"), 0h);
  const TimeZone unruled = TimeZone::fromBytes("T", zoneFile("", {{last, 1}}));
  EXPECT_EQ(offset(unruled, "2500-12-01 00:00:00"), 1h) << "the last offset stays";
}

TEST(TimeZoneTest, RefusesNamesThatAreNoZone) {
  const std::string allowed =
      ": UTC and the names below /usr/share/zoneinfo/ (Debian's package tzdata) are allowed, such as "
      "Europe/Berlin";
  const auto named = [](const std::string& name) { return refusalOf([&] { (void)TimeZone::named(name); }); };
  EXPECT_EQ(named("Europe/Berlni"),
            "the time zone 'Europe/Berlni' cannot be used: there is no such zone" + allowed);
  for (const std::string name : {"", "/etc/passwd", "../../../etc/passwd", "Europe/../UTC", "Europe/", "a b",
                                 "CET-1CEST,M3.5.0,M10.5.0/3"}) {
    EXPECT_THAT(named(name), HasSubstr("it is no name")) << name;
  }
  EXPECT_THAT(named("Europe"), HasSubstr("there is no such zone")) << "a folder";
  EXPECT_THAT(named("zone.tab"), HasSubstr("it is no name"));
}

TEST(TimeZoneTest, RefusesDamagedFilesWhereverTheyAreCut) {
  const std::string good = zoneFile("AAA0BBB,M3.5.0,M10.5.0", {{0, 1}, {100, 0}});
  ASSERT_EQ(refusal("T", good), "accepted");
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_THAT(refusal("T", good.substr(0, length)),
                StartsWith("the time zone 'T' cannot be used: its file "));
  }
  EXPECT_THAT(refusal("T", zoneFile("", {{100, 0}, {0, 1}})), HasSubstr("has changes out of order"));
  EXPECT_THAT(refusal("T", zoneFile("", {{0, 2}})), HasSubstr("names an offset that it does not have"));
  std::string old = good;
  old[4] = '\0';
  EXPECT_THAT(refusal("T", old), HasSubstr("is of version 1"));
  for (const std::string rule :
       {"A0", "AAA", "AAA0BBB", "AAA25", "AAA0BBB,M13.1.0,M10.5.0", "AAA0BBB,M3.6.0,M10.5.0",
        "AAA0BBB,M3.5.7,M10.5.0", "AAA0BBB,J0,J1", "AAA0BBB,J1,366", "AAA0BBB,M3.5.0",
        "AAA0BBB,M3.5.0,M10.5.0,", "AAA0BBB,M3.5.0/168,M10.5.0", "<AAA0", "AAA0:60"}) {
    EXPECT_THAT(refusal("T", zoneFile(rule)), HasSubstr("'" + rule + "' is not the rule of a time zone"));
  }
}

}  // namespace
}  // namespace lockkeeper::test
