#include <Poco/JSON/Array.h>
#include <Poco/JSON/Parser.h>

#include <sstream>
#include <string>
#include <vector>

#include "cli_fixture.h"

namespace lockkeeper::test {
namespace {

using Poco::JSON::Object;

/// What --json prints: an object a line.
class JsonOutput : public CommandTest {
 protected:
  static std::vector<Object::Ptr> objectsIn(const std::string& output) {
    std::vector<Object::Ptr> all;
    std::istringstream text(output);
    for (std::string line; std::getline(text, line);) {
      all.push_back(Poco::JSON::Parser().parse(line).extract<Object::Ptr>());
    }
    return all;
  }
  Object::Ptr one(const std::vector<std::string>& arguments, int exitCode = 0) const {
    const Finished finished = lockkeeper(arguments);
    EXPECT_EQ(finished.exitCode, exitCode) << finished.errors;
    const auto objects = objectsIn(finished.output);
    EXPECT_EQ(objects.size(), 1U) << finished.output;
    return objects.empty() ? Object::Ptr(new Object) : objects.front();
  }
  void hold(const std::string& key, const std::string& owner) const {
    redis.command({"SET", key, std::string(32, 'a') + "@" + owner, "PX", "600000"});
  }
};

TEST_F(JsonOutput, ShowTellsWhoHoldsTheKeyOrThatItIsFree) {
  hold("k", "web:1");
  const Object::Ptr held = one({"show", "--json", "k"});
  EXPECT_EQ(held->getValue<std::string>("key"), "k");
  EXPECT_TRUE(held->getValue<bool>("held"));
  EXPECT_EQ(held->getValue<std::string>("owner"), "web:1");
  EXPECT_GT(held->getValue<int>("remainingMs"), 590'000);
  EXPECT_TRUE(held->isNull("fence"));
  const Object::Ptr free = one({"show", "--json", "other"});
  EXPECT_FALSE(free->getValue<bool>("held"));
}

TEST_F(JsonOutput, ListHasAnObjectForEachKeyWhateverItsBytes) {
  const std::string bytes = "b\xff\x1b";
  hold("a \xc3\xa9", "web:1");
  hold(bytes, "web:2");
  const Finished finished = lockkeeper({"list", "--json"});
  EXPECT_EQ(finished.errors, "");
  const auto objects = objectsIn(finished.output);
  ASSERT_EQ(objects.size(), 2U) << finished.output;
  EXPECT_EQ(objects[0]->getValue<std::string>("key"), "a \xc3\xa9");
  EXPECT_FALSE(objects[0]->has("keyHex"));
  EXPECT_EQ(objects[1]->getValue<std::string>("key"), "b\\xff\\x1b");
  EXPECT_EQ(objects[1]->getValue<std::string>("keyHex"), "62ff1b");
  EXPECT_EQ(finished.output.find('\xc3'), std::string::npos) << "it is ASCII";
  EXPECT_EQ(finished.output.find("aaaa"), std::string::npos) << "the token is secret";
}

TEST_F(JsonOutput, BreakTellsWhatWasDone) {
  hold("k", "web:1");
  EXPECT_EQ(one({"break", "--json", "--yes", "k"})->getValue<std::string>("outcome"), "taken");
  EXPECT_EQ(one({"break", "--json", "--yes", "k"})->getValue<std::string>("outcome"), "free");
}

TEST_F(JsonOutput, LimitTellsWhatIsLeftAndWhenToComeBack) {
  const std::vector<std::string> take{"limit", "--json", "--rate", "2/min", "k"};
  EXPECT_EQ(one(take)->getValue<int>("remaining"), 1);
  EXPECT_TRUE(one(take)->getValue<bool>("allowed"));
  const Object::Ptr refused = one(take, 75);
  EXPECT_FALSE(refused->getValue<bool>("allowed"));
  EXPECT_GT(refused->getValue<int>("retryAfterMs"), 0);
  EXPECT_LE(refused->getValue<int>("retryAfterMs"), 30'000);
}

TEST_F(JsonOutput, TheHelpSaysWhichCommandsHaveNone) {
  const std::string overview = lockkeeper({"--help"}).output;
  EXPECT_NE(overview.find("--json: all but run, serve and completion"), std::string::npos) << overview;
  for (const std::string command :
       {"run", "show", "list", "watch", "serve", "break", "limit", "migrate", "completion"}) {
    const bool printsData = command != "run" && command != "serve" && command != "completion";
    const std::string help = lockkeeper({command, "--help"}).output;
    EXPECT_EQ(help.find("--json") != std::string::npos, printsData) << help;
  }
}

}  // namespace
}  // namespace lockkeeper::test
