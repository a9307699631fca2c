// For each rule, histories that break it and nothing else, and those beside them that are right.

#include "history/story.h"

namespace lockkeeper::test {
namespace {

using history::Kind;
using history::Operation;
using history::Phase;
using history::Rule;

TEST(HistoryOfHolders, OneBelievesUntilItReleasesIsToldOfItsLossOrItsLeaseEnds) {
  for (const int how : {0, 1, 2}) {
    for (const bool tooEarly : {false, true}) {
      Story story;
      const auto id = story.lock("p1", 0, 1, how == 2 ? 10 : 100);
      if (how == 0) story.release("p1", id, 10);
      if (how == 1) story.tell(Phase::lost, "p1", id, 10);
      story.lock("p2", 2, tooEarly ? 9 : 10, 20);
      tooEarly ? story.breaks(Rule::twoHolders) : story.isGood();
    }
  }
}

TEST(HistoryOfHolders, ARenewalIsBelievedWhenItIsKnown) {
  Story story;
  const auto id = story.lock("p1", 0, 1, 10);
  story.renew("p1", id, 5, 20);
  story.lock("p2", 2, 15, 30);
  story.breaks(Rule::twoHolders);

  Story unknown;
  const auto grant = unknown.lock("p1", 0, 1, 10);
  const auto renewal = unknown.invoke({.process = "p1", .operation = Operation::renew, .grant = grant}, 5);
  unknown.tell(Phase::unknown, "p1", renewal, 6);
  unknown.lock("p2", 2, 15, 30);
  unknown.isGood();
}

TEST(HistoryOfHolders, ADeadProcessBelievesNothing) {
  for (const bool tooEarly : {false, true}) {
    Story story;
    story.lock("p1", 0, 1, 10);
    story.tell(Phase::died, "p1", 0, 4);
    story.lock("p2", 2, tooEarly ? 3 : 4, 20);
    tooEarly ? story.breaks(Rule::twoHolders) : story.isGood();
  }
}

TEST(HistoryOfHolders, AnUnknownOutcomeIsNoBelief) {
  Story story;
  const auto id = story.invoke({.process = "p1"}, 0);
  story.tell(Phase::unknown, "p1", id, 5);
  story.lock("p2", 1, 2, 10);
  story.isGood();
}

TEST(HistoryOfHolders, ReadersAreBesideEachOtherAndBesideNoWriter) {
  Story story;
  story.share({.process = "p1", .kind = Kind::shared}, 0, 1, 10);
  story.share({.process = "p2", .kind = Kind::shared}, 0, 2, 10);
  story.isGood();
  story.lock("p3", 0, 3, 10);
  story.breaks(Rule::twoHolders);

  Story writerFirst;
  writerFirst.lock("p1", 0, 1, 10);
  writerFirst.share({.process = "p2", .kind = Kind::shared}, 0, 2, 10);
  writerFirst.breaks(Rule::twoHolders);
}

TEST(HistoryOfHolders, PermitsAreWithinTheirLimit) {
  const auto permits = [](const char* process, std::uint32_t count) {
    return history::Record{.process = process, .kind = Kind::permits, .permits = {count, 3}};
  };
  Story story;
  story.share(permits("p1", 2), 0, 1, 10);
  story.share(permits("p2", 1), 0, 2, 20);
  story.share(permits("p3", 2), 0, 10, 20);
  story.isGood();
  story.share(permits("p4", 1), 0, 12, 20);
  story.breaks(Rule::twoHolders);
}

TEST(HistoryOfHolders, AnUpgradeIsBesideItsOwnReaderAlone) {
  Story story;
  story.share({.process = "p1", .kind = Kind::upgradeable}, 0, 1, 10);
  story.share({.process = "p2", .kind = Kind::shared}, 0, 2, 5);
  const auto upgrade = story.share({.process = "p1", .kind = Kind::upgrade}, 3, 5, 10);
  story.release("p1", upgrade, 7);
  story.share({.process = "p2", .kind = Kind::shared}, 6, 8, 20);
  story.isGood();
  story.share({.process = "p3", .kind = Kind::upgradeable}, 6, 9, 20);
  story.breaks(Rule::twoHolders);

  Story reader;
  reader.share({.process = "p1", .kind = Kind::upgradeable}, 0, 1, 10);
  reader.share({.process = "p2", .kind = Kind::shared}, 0, 2, 6);
  reader.share({.process = "p1", .kind = Kind::upgrade}, 3, 5, 10);
  reader.breaks(Rule::twoHolders);
}

TEST(HistoryOfFences, IncreaseFromOneGrantToTheNext) {
  for (const Fence second : {Fence{6}, Fence{7}, Fence{8}}) {
    Story story({.fences = true});
    story.lock("p1", 0, 1, 5, 7);
    story.lock("p2", 2, 5, 10, second);
    second > 7 ? story.isGood() : story.breaks(Rule::fence);
    Story unpromised;
    unpromised.lock("p1", 0, 1, 5, 7);
    unpromised.lock("p2", 2, 5, 10, second);
    unpromised.isGood();
  }
}

TEST(HistoryOfFences, OfCallsThatOverlapMayComeInEitherOrderButNotTwice) {
  Story story({.fences = true});
  story.lock("p1", 0, 10, 10, 7);
  story.lock("p2", 5, 8, 9, 6);
  story.isGood();
  story.lock("p3", 7, 11, 12, 7);
  story.breaks(Rule::fence);
}

TEST(HistoryOfFences, AreMissedWhereTheyArePromised) {
  Story story({.fences = true});
  story.lock("p1", 0, 1, 5);
  story.breaks(Rule::fence);
}

TEST(HistoryOfFences, AReaderHasThatOfTheLastWriterOrALaterOne) {
  for (const Fence reader : {Fence{6}, Fence{7}, Fence{8}}) {
    Story story({.fences = true});
    story.lock("p1", 0, 1, 5, 7);
    story.share({.process = "p2", .kind = Kind::shared}, 2, 5, 10, reader);
    story.share({.process = "p3", .kind = Kind::shared}, 6, 7, 10, 7);
    reader >= 7 ? story.isGood() : story.breaks(Rule::fence);
    story.lock("p1", 11, 12, 20, 8);
    reader == 7 ? story.isGood() : story.breaks(Rule::fence);
  }
}

/// p1 waits from 10 on, and p2 asks at `asked`.
Story overtaking(Story::Time asked, Story::Time granted, Kind kind = Kind::exclusive, bool promised = true) {
  Story story({.fifo = promised});
  const auto first = story.invoke({.process = "p1", .kind = kind}, 5);
  story.tell(Phase::queued, "p1", first, 10);
  story.share({.process = "p2", .kind = kind}, asked, granted, granted + 1);
  story.answer({.phase = Phase::ok, .process = "p1", .id = first, .until = 40}, 30);
  return story;
}

TEST(HistoryOfOrder, WhoIsKnownToWaitIsServedBeforeThoseWhoComeLater) {
  overtaking(11, 20).breaks(Rule::order);
  overtaking(10, 20).isGood();  // not later
  overtaking(11, 40).isGood();
  overtaking(11, 20, Kind::exclusive, false).isGood();
  overtaking(11, 20, Kind::shared).isGood();  // both may have been granted in one step
  overtaking(11, 20, Kind::upgradeable).breaks(Rule::order);
}

TEST(HistoryOfOrder, WhoStillWaitsAfterALaterOneWasServedWasPassedOver) {
  for (const Kind kind : {Kind::shared, Kind::exclusive}) {
    for (const int answers : {0, 1, 2}) {
      Story story({.fifo = true});
      const auto first = story.invoke({.process = "p1", .kind = kind}, 5);
      story.tell(Phase::queued, "p1", first, 10);
      // The first of them may have been on its way for long.
      for (int each = 0; each < answers; ++each) story.tell(Phase::queued, "p1", first, 21 + each);
      story.share({.process = "p2", .kind = kind}, 11, 20, 30);
      story.tell(Phase::fail, "p1", first, 50);
      answers == 2 ? story.breaks(Rule::order) : story.isGood();
    }
  }
}

TEST(HistoryOfOrder, AWaiterThatWasStoppedMayHaveMissedItsTurn) {
  for (const bool wasStopped : {false, true}) {
    Story story({.fifo = true});
    const auto first = story.invoke({.process = "p1"}, 5);
    story.tell(Phase::queued, "p1", first, 10);
    if (wasStopped) {
      story.tell(Phase::paused, "p1", 0, 12);
      story.tell(Phase::resumed, "p1", 0, 25);
    }
    story.share({.process = "p2"}, 15, 20, 21);
    story.answer({.phase = Phase::ok, .process = "p1", .id = first, .until = 40}, 30);
    wasStopped ? story.isGood() : story.breaks(Rule::order);
  }
}

TEST(HistoryOfOrder, AnUpgradeGoesAhead) {
  Story story({.fifo = true});
  story.share({.process = "p1", .kind = Kind::upgradeable}, 0, 1, 20);
  const auto writer = story.invoke({.process = "p2"}, 2);
  story.tell(Phase::queued, "p2", writer, 3);
  story.share({.process = "p1", .kind = Kind::upgrade}, 4, 5, 20);
  story.answer({.phase = Phase::ok, .process = "p2", .id = writer, .until = 40}, 30);
  story.isGood();
}

TEST(HistoryOfUpdates, AnUpdateIsLostWhenAnotherReplacesTheSameValue) {
  for (const Phase outcome : {Phase::ok, Phase::fail, Phase::unknown}) {
    Story story;
    const auto first = story.lock("p1", 0, 1, 10);
    const auto second = story.lock("p2", 0, 10, 20);
    story.read("p1", first, 0, 2);
    story.read("p2", second, 0, 12);
    story.write("p2", second, 2, 14);
    story.write("p1", first, 1, 16, outcome);  // a packet that is late
    outcome == Phase::ok ? story.breaks(Rule::lostUpdate) : story.isGood();
  }
}

TEST(HistoryOfUpdates, AHolderMayWriteAgainOverItsOwn) {
  Story story;
  const auto first = story.lock("p1", 0, 1, 10);
  story.read("p1", first, 0, 2);
  story.write("p1", first, 1, 4);
  story.write("p1", first, 2, 6);
  const auto second = story.lock("p2", 0, 10, 20);
  story.read("p2", second, 2, 12);
  story.write("p2", second, 3, 14);
  story.isGood();
}

TEST(HistoryOfUpdates, AReadSeesTheLastWriteBeforeIt) {
  Story story;
  const auto first = story.lock("p1", 0, 1, 10);
  story.write("p1", first, 1, 2);
  story.write("p1", first, 2, 4);
  const auto second = story.lock("p2", 0, 10, 20);
  story.read("p2", second, 2, 12);
  story.isGood();
  story.read("p2", second, 1, 14);
  story.breaks(Rule::lostUpdate);
}

TEST(HistoryOfUpdates, AReadSeesWhatWasWrittenByThen) {
  for (const int what : {0, 1, 2, 3}) {
    Story story;
    const auto grant = story.lock("p1", 0, 1, 50);
    story.read("p1", grant, 7, 2);  // as it was in the beginning
    if (what == 1) story.write("p1", grant, 8, 4, Phase::unknown);
    if (what == 2) story.write("p1", grant, 8, 4, Phase::fail);
    if (what == 3) story.write("p1", grant, 8, 10);
    story.read("p1", grant, 8, 6);
    what == 1 ? story.isGood() : story.breaks(Rule::lostUpdate);
  }
}

Story withLimit(const char* kind) {
  Story story;
  story.history().addPolicy(
      RatePolicy::parse("sms", kind == std::string("token-bucket")
                                   ? std::map<std::string, std::string>{{"rate", "2/s"}, {"burst", "10"}}
                                   : std::map<std::string, std::string>{{"rate", "10/s"}, {"kind", kind}}));
  return story;
}

TEST(HistoryOfLimits, ABucketAdmitsItsBurstAndTheRateExactly) {
  for (const std::int64_t early : {0, 1}) {
    Story story = withLimit("token-bucket");
    story.take(10, 1'000'000);
    story.take(1, 1'500'000 - early);
    early == 0 ? story.isGood() : story.breaks(Rule::limit);
  }
}

TEST(HistoryOfLimits, ASlidingWindowAdmitsItsNumberExactly) {
  for (const std::int64_t early : {0, 1}) {
    Story story = withLimit("sliding-window");
    story.take(4, 1'000'000);
    story.take(6, 1'999'999);
    story.take(4, 2'000'000 - early);
    early == 0 ? story.isGood() : story.breaks(Rule::limit);
  }
}

TEST(HistoryOfLimits, WithoutTheStoresTimeACallWasDecidedSomewhereInIt) {
  for (const char* const kind : {"token-bucket", "sliding-window"}) {
    Story story = withLimit(kind);
    story.take(10, {}, 0, 1'000'000'000);
    story.take(1, {}, 500'000'000, 1'000'000'000);  // in the beginning of one, in the end of the other
    story.isGood();
    story.take(10, {}, 500'000'000, 900'000'000);
    story.breaks(Rule::limit, kind == std::string("token-bucket") ? 2 : 1);
  }
}

TEST(HistoryOfAnswers, EachCallIsAnsweredWithinItsBoundUnlessItsProcessDied) {
  enum { inTime, late, none, died, paused, pausedAndLate };
  for (const int what : {inTime, late, none, died, paused, pausedAndLate}) {
    Story story;
    const auto id = story.invoke({.process = "p1", .within = 10}, 5);
    if (what == paused || what == pausedAndLate) {
      story.tell(Phase::paused, "p1", 0, 7);
      story.tell(Phase::resumed, "p1", 0, what == paused ? 20 : 10);
    }
    if (what == died) story.tell(Phase::died, "p1", 0, 7);
    if (what == inTime) story.tell(Phase::fail, "p1", id, 15);
    if (what == late || what == paused || what == pausedAndLate) story.tell(Phase::fail, "p1", id, 21);
    story.end(100);
    what == late || what == none || what == pausedAndLate ? story.breaks(Rule::noAnswer) : story.isGood();
  }
}

TEST(HistoryOfAnswers, WithoutABoundACallIsAnsweredBeforeTheEnd) {
  Story story;
  story.invoke({.process = "p1"}, 5);
  story.breaks(Rule::noAnswer);
  story.tell(Phase::died, "p1", 0, 7);
  story.isGood();
}

TEST(HistoryOfLeaks, WhatIsHeldInTheEndIsWhatSomebodyHas) {
  for (const Story::Time until : {50, 51}) {
    Story story;
    story.lock("p1", 0, 1, until);
    story.end(50, "k");
    until > 50 ? story.isGood() : story.breaks(Rule::leak);
  }
  Story released;
  released.release("p1", released.lock("p1", 0, 1, 100), 10);
  released.end(50);
  released.isGood();
  released.end(50, "k");
  released.breaks(Rule::leak);
}

// --- what is no history ---

void refuses(Story& story, const history::Record& record, const std::string& named) {
  try {
    story.history().add(record, 17);
    FAIL() << "should name " << named;
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find(named), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find("line 17: "), 0U) << error.what();
  }
}

TEST(HistoryThatIsNone, IsRefusedWithTheLineAndTheValue) {
  Story story;
  const auto id = story.lock("p1", 5, 6, 10);
  const auto open = story.invoke({.process = "p1"}, 7);
  story.tell(Phase::died, "dead", 0, 7);
  refuses(story, {.time = -1, .process = "p1", .id = 9, .key = "k"}, "time is -1");
  refuses(story, {.process = "", .id = 9, .key = "k"}, "process is \"\"");
  refuses(story, {.process = "dead", .id = 9, .key = "k"}, "'dead'");
  refuses(story, {.process = "p1", .id = id, .key = "k"}, "id is 1");
  refuses(story, {.process = "p1", .id = 9}, "key is \"\"");
  refuses(story, {.process = "p1", .id = 9, .key = "k", .within = -2}, "within is -2");
  refuses(story, {.process = "p1", .id = 9, .key = "k", .kind = Kind::permits, .permits = {5, 3}}, "5");
  refuses(story, {.process = "p1", .id = 9, .operation = Operation::release, .grant = open}, "grant is 2");
  refuses(story, {.process = "p2", .id = 9, .operation = Operation::release, .grant = id}, "grant is 1");
  refuses(story, {.process = "p1", .id = 9, .operation = Operation::write, .key = "row", .grant = id},
          "value");
  refuses(story, {.process = "p1", .id = 9, .operation = Operation::take, .key = "k", .policy = "no"},
          "'no'");
  refuses(story, {.time = 6, .phase = Phase::ok, .process = "p1", .id = open, .until = 9}, "time is 6");
  refuses(story, {.time = 8, .phase = Phase::ok, .process = "p1", .id = 99}, "id is 99");
  refuses(story, {.time = 8, .phase = Phase::ok, .process = "p1", .id = id, .until = 9}, "id is 1");
  refuses(story, {.time = 8, .phase = Phase::lost, .process = "p1", .id = open}, "id is 2");
  refuses(story, {.time = 8, .phase = Phase::resumed, .process = "p1"}, "not paused");
  refuses(story, {.time = 8, .phase = Phase::ok, .process = "p1", .id = open}, "until is missing");
  story.history().addPolicy(RatePolicy::parse("sms", {{"rate", "3/s"}}));
  refuses(story,
          {.process = "p1", .id = 9, .operation = Operation::take, .key = "k", .policy = "sms", .units = 4},
          "units is 4");
  EXPECT_THROW(story.history().addPolicy(RatePolicy::parse("sms", {{"rate", "3/s"}})), std::invalid_argument);
  EXPECT_THROW(story.history().addPolicy(RatePolicy::parse("q", {{"rate", "3/s"}, {"kind", "leaky-queue"}})),
               std::invalid_argument);
}

TEST(HistoryThatIsNone, EachWriteHasAValueOfItsOwn) {
  Story story;
  const auto id = story.lock("p1", 0, 1, 10);
  story.write("p1", id, 5, 2);
  story.write("p1", id, 5, 4);
  EXPECT_THROW((void)check(story.history()), std::invalid_argument);
}

}  // namespace
}  // namespace lockkeeper::test
