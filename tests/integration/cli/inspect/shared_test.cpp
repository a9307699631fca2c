// Keys that several holders share, as `lockkeeper run --permits` and readers do.

#include <Poco/JSON/Array.h>
#include <Poco/JSON/Parser.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <list>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "cli_fixture.h"

namespace lockkeeper::test {
namespace {

using Poco::JSON::Object;

class SharedKeys : public CommandTest {
 protected:
  /// `lockkeeper run` with one of three permits of "export", until it is destroyed.
  Process holding(const std::string& name) const {
    Process process = start({"run", "--permits", "3", "--ttl", "50s", "export", "--", "sh", "-c",
                             "touch " + file(name) + "; exec sleep 60"});
    EXPECT_TRUE(fileAppears(name));
    return process;
  }
  static std::string ownerOf(const Process& process) { return ":" + std::to_string(process.pid()); }
  static Object::Ptr parsed(const std::string& line) {
    return Poco::JSON::Parser().parse(line).extract<Object::Ptr>();
  }
  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  }
};

TEST_F(SharedKeys, SoManyOfTwentyWorkersRunAtATime) {
  // Each says how many run beside it.
  const std::string marks = file("running");
  std::filesystem::create_directory(marks);
  const std::string work =
      "mkdir " + marks + "/$$; ls " + marks + " | wc -l; sleep 0.05; rmdir " + marks + "/$$";
  std::vector<std::jthread> workers;
  std::vector<Finished> finished(20);
  for (Finished& each : finished) {
    workers.emplace_back([&] {
      each = lockkeeper({"run", "--permits", "3", "--wait", "1m", "export", "--", "sh", "-c", work});
    });
  }
  workers.clear();
  int most = 0;
  for (const Finished& each : finished) {
    EXPECT_EQ(each.exitCode, 0) << each.errors;
    most = std::max(most, std::stoi("0" + each.output));
  }
  EXPECT_LE(most, 3);
  EXPECT_GE(most, 2) << "they run beside each other";
  EXPECT_TRUE(isFree("export"));
}

TEST_F(SharedKeys, RunSaysWhatIsWrongWithItsPermits) {
  const Process first = holding("up");
  EXPECT_EQ(lockkeeper({"run", "export", "--", "true"}).exitCode, 75) << "it wants all of the key";
  const Finished other = lockkeeper({"run", "--permits", "4", "export", "--", "true"});
  EXPECT_EQ(other.exitCode, 78);
  EXPECT_NE(other.errors.find("a limit of 3 permits for those who hold it, not 4"), std::string::npos)
      << other.errors;
  for (const std::string text : {"0", "1000001", "-1", "x", ""}) {
    const Finished refused = lockkeeper({"run", "--permits=" + text, "export", "--", "true"});
    EXPECT_EQ(refused.exitCode, 64) << text;
    if (text.empty()) continue;
    EXPECT_NE(refused.errors.find("--permits is '" + text + "': it must be a whole number from 1 to 1000000"),
              std::string::npos)
        << refused.errors;
  }
}

TEST_F(SharedKeys, AStoreThatCountsNoPermitsSaysWhyBeforeItIsAsked) {
  const std::vector<std::array<std::string, 2>> stores{
      {"redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3", "a quorum cannot count permits"},
      {"redis+legacy://127.0.0.1:1/0", "its values hold one time stamp, of one holder"},
      {"mysql+getlock://u@127.0.0.1:1/d", "GET_LOCK has no shared mode"}};
  for (const auto& [store, why] : stores) {
    const Finished refused = lockkeeper({"run", "--store", store, "--permits", "3", "k", "--", "true"});
    if (refused.errors.find("no driver") != std::string::npos) continue;  // it is built without
    EXPECT_EQ(refused.exitCode, 78) << refused.errors;
    EXPECT_NE(refused.errors.find("has no shared locks and no semaphores: " + why), std::string::npos)
        << refused.errors;
  }
}

TEST_F(SharedKeys, ShowAndListTellOfEachHolder) {
  const Process first = holding("first");
  const Process second = holding("second");
  redis.command({"SET", "other", std::string(32, 'a') + "@web:1", "PX", "600000"});
  for (const std::vector<std::string>& look : {std::vector<std::string>{"show", "export"}, {"list", "exp"}}) {
    const Finished seen = lockkeeper(look);
    EXPECT_EQ(seen.exitCode, 0) << seen.errors;
    EXPECT_NE(seen.output.find(ownerOf(first)), std::string::npos) << seen.output;
    EXPECT_NE(seen.output.find(ownerOf(second)), std::string::npos) << seen.output;
    EXPECT_EQ(count(seen.output, "1 of 3"), 2U) << seen.output;
    EXPECT_EQ(count(seen.output, "\n"), 3U) << seen.output;
  }
  EXPECT_NE(lockkeeper({"list"}).output.find("-      all\n"), std::string::npos)
      << lockkeeper({"list"}).output;
  EXPECT_EQ(lockkeeper({"list", "other"}).output.find("SHARE"), std::string::npos) << "it is not shared";
  const Object::Ptr shown = parsed(lockkeeper({"show", "--json", "export"}).output);
  EXPECT_TRUE(shown->getValue<bool>("held"));
  EXPECT_FALSE(shown->has("owner"));
  const auto holders = shown->getArray("holders");
  ASSERT_EQ(holders->size(), 2U);
  EXPECT_EQ(holders->getObject(0)->getValue<int>("permits"), 1);
  EXPECT_EQ(holders->getObject(0)->getValue<int>("limit"), 3);
  EXPECT_GT(holders->getObject(0)->getValue<int>("remainingMs"), 0);
  EXPECT_EQ(count(lockkeeper({"list", "--json", "exp"}).output, "\"limit\":3"), 2U);
}

TEST_F(SharedKeys, ReadersAreCalledSo) {
  const std::string reader = std::string(32, 'a') + "@web:1@1/1000000";
  const std::string upgradeable = std::string(32, 'b') + "@web:2@500001/1000000";
  const std::string writer = std::string(32, 'c') + "@web:2@499999/1000000";
  redis.command({"ZADD", "k", "1048577000001", "permits", "9999999999999", reader, "9999999999999",
                 upgradeable, "9999999999999", writer});
  const std::string seen = lockkeeper({"show", "k"}).output;
  EXPECT_NE(seen.find("-      reader\n"), std::string::npos) << seen;
  EXPECT_NE(seen.find("upgradeable reader\n"), std::string::npos) << seen;
  EXPECT_NE(seen.find("writer\n"), std::string::npos) << seen;
  EXPECT_EQ(seen.find("aaaa"), std::string::npos) << "the token is secret";
}

TEST_F(SharedKeys, BreakTakesTheKeyFromAllWhoWereShown) {
  std::list<Process> holders;
  holders.push_back(holding("first"));
  holders.push_back(holding("second"));
  const Finished broken = lockkeeper({"break", "--yes", "export"});
  EXPECT_EQ(broken.exitCode, 0) << broken.errors;
  EXPECT_EQ(broken.output, "export was taken from its 2 holders\n");
  EXPECT_TRUE(isFree("export"));
  EXPECT_EQ(lockkeeper({"break", "--yes", "export"}).output, "export was free\n");
}

TEST_F(SharedKeys, WatchTellsOfEachHolderForItselfAndNotOfRenewals) {
  const auto lines = [&] {
    std::istringstream text(readFile(folder / "output"));
    std::vector<std::string> all;
    for (std::string line; std::getline(text, line);) all.push_back(line);
    return all;
  };
  const auto share = [&](const char token) { return std::string(32, token) + "@web:" + token + "@1/3"; };
  const auto hold = [&](const char token, const std::string& until, const std::string& taken) {
    redis.command({"ZADD", "k", taken, "permits", until, share(token)});
  };
  hold('a', "9999999999000", "3145729");
  const Process watch = start({"watch", "--json", "--interval", "100ms"});
  ASSERT_TRUE(waitUntil([&] { return lines().size() == 1; })) << readFile(folder / "errors");
  hold('b', "9999999999001", "3145730");
  ASSERT_TRUE(waitUntil([&] { return lines().size() == 2; }));
  hold('a', "9999999999002", "3145730");  // renewed: it has the longest lease now
  redis.command({"ZREM", "k", share('b')});
  ASSERT_TRUE(waitUntil([&] { return lines().size() == 3; }));
  const std::vector<std::string> events{"held", "taken", "freed"};
  const std::vector<std::string> owners{"web:a", "web:b", "web:b"};
  for (std::size_t each = 0; each < events.size(); ++each) {
    const Object::Ptr change = parsed(lines()[each]);
    EXPECT_EQ(change->getValue<std::string>("event"), events[each]) << lines()[each];
    EXPECT_EQ(change->getValue<std::string>("owner"), owners[each]);
    EXPECT_EQ(change->getValue<int>("limit"), 3);
  }
}

}  // namespace
}  // namespace lockkeeper::test
