#include <Poco/JSON/Array.h>
#include <Poco/JSON/Object.h>
#include <Poco/JSON/Parser.h>

#include "migration_fixture.h"

namespace lockkeeper::test {
namespace {

using migration::Phase;

class MigrateCommand : public MigrationTest {
 protected:
  /// What an error says, after its exit code was checked.
  std::string refusal(const std::vector<std::string>& words, int exitCode) const {
    const Finished finished = lockkeeper(words);
    EXPECT_EQ(finished.exitCode, exitCode) << finished.output << finished.errors;
    EXPECT_EQ(finished.output, "");
    return finished.errors;
  }

  /// The one object that the command prints with --json.
  Poco::JSON::Object::Ptr json(std::vector<std::string> words) const {
    words.emplace_back("--json");
    const Finished finished = lockkeeper(std::move(words));
    EXPECT_EQ(finished.exitCode, 0) << finished.errors;
    EXPECT_EQ(finished.output.find('\n'), finished.output.size() - 1) << finished.output;
    return Poco::JSON::Parser().parse(finished.output).extract<Poco::JSON::Object::Ptr>();
  }

  /// One that follows the rules of `version`, and still holds a lock in a phase that is left.
  void join(const std::string& label, std::uint64_t version) const {
    migration::Member member;
    member.id = "a";
    member.labels = {label};
    member.version = version;
    member.drained = false;
    member.lease = std::chrono::minutes{1};
    member.locksEndAfter = std::chrono::minutes{1};
    migration::StateStore stateStore(openStateStore(newUri()), "migration");
    migration::MigrationState known;
    stateStore.heartbeat(member, known, systemClock()->now() + std::chrono::seconds{10});
  }
};

TEST_F(MigrateCommand, RunsACommandUnderALockOfTheMigration) {
  decree(Phase::both);
  const std::string look =
      "for n in 1 2; do redis-cli -p " + std::to_string(redis.port()) + " -n $n exists k; done";
  const Finished finished = lockkeeper({"run", "k", "--", "sh", "-c", look});
  EXPECT_EQ(finished.exitCode, 0) << finished.errors;
  EXPECT_EQ(finished.output, "1\n1\n");
  EXPECT_NE(status().find("PHASE\n\n"), std::string::npos) << "it has left the migration: " << status();
  EXPECT_EQ(lockkeeper({"show", "k"}).output, "k is free\n");
}

TEST_F(MigrateCommand, StatusSaysThatNobodyHasBegun) {
  EXPECT_NE(status().find("none yet in the migration 'migration'"), std::string::npos) << status();
}

TEST_F(MigrateCommand, StatusSaysThatNobodyIsThereToTakeTheStep) {
  decree(Phase::legacy);
  advance("both");
  EXPECT_NE(status().find("  - no member is running: start a process that takes part\n"), std::string::npos)
      << status();
}

TEST_F(MigrateCommand, AdvanceSaysWhatItWillDoAndDryRunDoesNot) {
  decree(Phase::legacy);
  const Finished dry = lockkeeper({"migrate", "advance", "25% = both", "--dry-run"});
  EXPECT_EQ(dry.exitCode, 0) << dry.errors;
  EXPECT_NE(dry.output.find("rules now:  * = legacy\nrules then: 25% = both, * = legacy\n"),
            std::string::npos)
      << dry.output;
  EXPECT_NE(dry.output.find("nothing was written"), std::string::npos) << dry.output;
  EXPECT_NE(status().find("version 1"), std::string::npos) << status();
  const Finished wet = lockkeeper({"migrate", "advance", "25% = both"});
  EXPECT_NE(wet.output.find("written as version 2"), std::string::npos) << wet.output;
  EXPECT_NE(status().find("target:    25% = both, * = legacy"), std::string::npos) << status();
  const Finished again = lockkeeper({"migrate", "advance", "25% = both"});
  EXPECT_NE(again.output.find("the rules say so already"), std::string::npos) << again.output;
}

TEST_F(MigrateCommand, ProgramsReadTheStatusAsJson) {
  const auto none = json({"migrate", "status"});
  EXPECT_EQ(none->getValue<int>("version"), 0);
  EXPECT_TRUE(none->isNull("sinceMs"));
  EXPECT_TRUE(none->isNull("target"));
  EXPECT_TRUE(none->isNull("lastSighting"));
  EXPECT_TRUE(none->isNull("next"));
  decree(Phase::both);
  advance("25% = modern");
  join("web\xff:1", 2);
  migration::StateStore stateStore(openStateStore(newUri()), "migration");
  stateStore.sighted("order:17", true, systemClock()->now() + std::chrono::seconds{10});
  const auto status = json({"migrate", "status"});
  EXPECT_EQ(status->getValue<std::string>("name"), "migration");
  EXPECT_EQ(status->getValue<int>("version"), 2);
  EXPECT_EQ(status->getValue<std::string>("current"), "* = both");
  EXPECT_EQ(status->getValue<std::string>("target"), "25% = modern, * = both");
  EXPECT_EQ(status->getObject("lastSighting")->getValue<std::string>("key"), "order:17");
  EXPECT_GE(status->getObject("lastSighting")->getValue<int>("agoMs"), 0);
  ASSERT_EQ(status->getArray("members")->size(), 1U);
  const auto member = status->getArray("members")->getObject(0);
  EXPECT_EQ(member->getValue<std::string>("member"), "web\\xff:1");
  EXPECT_EQ(member->getValue<std::string>("memberHex"), "776562ff3a31");
  EXPECT_EQ(member->getValue<int>("version"), 2);
  EXPECT_EQ(member->getValue<std::string>("phase"), "both, from both to 25% = modern, * = both");
  const auto next = status->getObject("next");
  EXPECT_EQ(next->getValue<std::string>("rules"), "25% = modern, * = both");
  ASSERT_GE(next->getArray("blockers")->size(), 1U);
  EXPECT_NE(next->getArray("blockers")->getObject(0)->getValue<std::string>("what"), "");
  EXPECT_TRUE(next->getArray("blockers")->getObject(0)->has("leftMs"));
}

TEST_F(MigrateCommand, ProgramsReadWhatAdvanceDoesAsJson) {
  decree(Phase::legacy);
  const auto says = [](const Poco::JSON::Object::Ptr& object, bool written, int version) {
    EXPECT_EQ(object->getValue<std::string>("after"), "25% = both, * = legacy");
    EXPECT_EQ(object->getValue<bool>("written"), written);
    EXPECT_EQ(object->getValue<int>("version"), version);
  };
  const auto dry = json({"migrate", "advance", "25% = both", "--dry-run"});
  EXPECT_EQ(dry->getValue<std::string>("before"), "* = legacy");
  says(dry, false, 1);
  says(json({"migrate", "advance", "25% = both"}), true, 2);
  says(json({"migrate", "advance", "25% = both"}), false, 2);
}

TEST_F(MigrateCommand, RefusesToSkipAPhase) {
  decree(Phase::legacy);
  EXPECT_NE(refusal({"migrate", "advance", "modern"}, 64).find("from legacy to modern at once"),
            std::string::npos);
  advance("both");
  const std::string text = refusal({"migrate", "advance", "modern"}, 64);
  EXPECT_NE(text.find("wait until the present change is complete"), std::string::npos) << text;
  decree(Phase::modern);
  EXPECT_NE(refusal({"migrate", "advance", "order:* = legacy"}, 64).find("'order:0'"), std::string::npos);
}

TEST_F(MigrateCommand, RefusesRulesThatMeanNothing) {
  EXPECT_NE(refusal({"migrate", "advance", "101% = both"}, 64).find("'101%'"), std::string::npos);
  EXPECT_NE(refusal({"migrate", "advance", "order:*"}, 64).find("KEYS = PHASE"), std::string::npos);
  EXPECT_NE(refusal({"migrate", "advance"}, 64).find("one RULE"), std::string::npos);
  EXPECT_NE(refusal({"migrate", "retreat"}, 64).find("status, advance"), std::string::npos);
  EXPECT_NE(refusal({"migrate"}, 64).find("status, advance"), std::string::npos);
}

TEST_F(MigrateCommand, RefusesMoreRulesThanCanBeRead) {
  decree(Phase::both);
  const auto rules = [](const std::string& name) {
    std::string all;
    for (int i = 0; i < 250; ++i) all += (i > 0 ? ", " : "") + name + std::to_string(i) + " = modern";
    return all;
  };
  advance(rules("orders:of:a:"));
  EXPECT_NE(refusal({"migrate", "advance", rules("orders:of:b:")}, 64).find("at most 8192"),
            std::string::npos);
  EXPECT_NE(status().find("version 2"), std::string::npos) << status();
}

TEST_F(MigrateCommand, WarnsOfARuleThatMatchesNothing) {
  decree(Phase::both);
  const Finished typo = lockkeeper({"migrate", "advance", "oder:* = legacy"});
  EXPECT_EQ(typo.exitCode, 0);
  EXPECT_NE(typo.errors.find("no key that is held now matches 'oder:*'"), std::string::npos) << typo.errors;
  const Finished zero = lockkeeper({"migrate", "advance", "0% = legacy"});
  EXPECT_NE(zero.errors.find("'0% = legacy' can match no key"), std::string::npos) << zero.errors;
  const auto held = openStore(oldUri());
  const Token token = Token::generate(*systemRandom());
  (void)held->acquire(
      {{"stock:1", token, "a:1"}, std::chrono::minutes{1}, systemClock()->now() + std::chrono::seconds{9}});
  EXPECT_EQ(lockkeeper({"migrate", "advance", "stock:* = legacy"}).errors.find("stock"), std::string::npos);
}

TEST_F(MigrateCommand, RefusesToMigrateAStoreOntoItself) {
  configure(newUri(), newUri());
  EXPECT_NE(refusal({"run", "k", "--", "true"}, 78).find("they must be two"), std::string::npos);
  configure("redis://localhost:" + std::to_string(redis.port()) + "/2", newUri());
  EXPECT_NE(refusal({"run", "k", "--", "true"}, 78).find("are the same"), std::string::npos)
      << "by another name";
}

TEST_F(MigrateCommand, RefusesAConfigurationThatIsNotOne) {
  const auto with = [&](const std::string& line) {
    configure(oldUri(), newUri(), line + "\n");
    return refusal({"run", "k", "--", "true"}, 78);
  };
  EXPECT_NE(with("lockkeeper.migration.phase = new").find("lockkeeper.migration.phase: "), std::string::npos);
  EXPECT_NE(with("lockkeeper.migration.phaze = both").find("did you mean lockkeeper.migration.phase?"),
            std::string::npos);
  EXPECT_NE(with("lockkeeper.migration.maxTtl = 25h").find("maxTtl is 25h"), std::string::npos);
  EXPECT_NE(with("lockkeeper.migration.stateStore = redis+nothing://h").find("redis+nothing"),
            std::string::npos);
  writeFile(configuration, "lockkeeper.store = " + newUri() + "\n");
  EXPECT_NE(refusal({"migrate", "status"}, 78).find("no lockkeeper.migration.from"), std::string::npos);
}

TEST_F(MigrateCommand, NobodyForgesARowOrControlsTheTerminal) {
  decree(Phase::legacy);
  migration::StateStore stateStore(openStateStore(newUri()), "migration");
  const Instant soon = systemClock()->now() + std::chrono::seconds{10};
  migration::Member member;
  member.id = "a";
  member.labels = {"web\x1b[2J:1", "x\r-  0s ago  modern"};
  member.locksEndAfter = std::chrono::minutes{1};
  migration::MigrationState known;
  stateStore.heartbeat(member, known, soon);
  const auto state = stateStore.read(soon);
  ASSERT_TRUE(stateStore.change(state, state.version + 1, state.current,
                                migration::Rules::parse("k\x1b[31m = both"), soon));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"migrate", "status"}, {"migrate", "advance", "legacy", "--dry-run"}}) {
    const Finished finished = lockkeeper(words);
    EXPECT_EQ(finished.exitCode, 0) << finished.errors;
    EXPECT_NE(finished.output.find("[31m"), std::string::npos) << "it is told of";
    EXPECT_EQ(finished.output.find_first_of("\x1b\r"), std::string::npos) << finished.output;
    EXPECT_EQ(finished.errors.find_first_of("\x1b\r"), std::string::npos) << finished.errors;
  }
}

TEST_F(MigrateCommand, SaysWhenTheStateIsOutOfReach) {
  redis.kill();
  EXPECT_EQ(lockkeeper({"migrate", "status"}).exitCode, 69);
  EXPECT_EQ(lockkeeper({"migrate", "advance", "both"}).exitCode, 69);
}

}  // namespace
}  // namespace lockkeeper::test
