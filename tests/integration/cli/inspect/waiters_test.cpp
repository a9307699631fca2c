// Who waits for a key, as show, list and watch tell it.

#include <Poco/JSON/Array.h>
#include <Poco/JSON/Parser.h>
#include <signal.h>

#include <string>
#include <vector>

#include "cli_fixture.h"

namespace lockkeeper::test {
namespace {

using Poco::JSON::Object;

class Waiters : public CommandTest {
 protected:
  Process holding(const std::vector<std::string>& options = {}) const {
    return running(options, {"sh", "-c", "touch " + file("up") + "; exec sleep 60"});
  }
  /// One more `lockkeeper run` that waits for "k": the `number`-th.
  Process waiting(std::size_t number, const std::vector<std::string>& options = {}) const {
    Process process = running(options, {"true"});
    EXPECT_TRUE(waitUntil([&] { return shown()->getArray("waiters")->size() == number; })) << number;
    return process;
  }
  Object::Ptr shown() const {
    return Poco::JSON::Parser().parse(lockkeeper({"show", "--json", "k"}).output).extract<Object::Ptr>();
  }
  static std::string pidOf(const Process& process) { return ":" + std::to_string(process.pid()); }

 private:
  Process running(const std::vector<std::string>& options, const std::vector<std::string>& command) const {
    std::vector<std::string> arguments{"run", "--wait", "1h", "--ttl", "50s"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"k", "--"});
    arguments.insert(arguments.end(), command.begin(), command.end());
    return start(arguments);
  }
};

TEST_F(Waiters, AreShownInTheirOrderAndOnlyWhileTheyLive) {
  const Process holder = holding();
  ASSERT_TRUE(fileAppears("up"));
  EXPECT_EQ(lockkeeper({"show", "k"}).output.find("WAIT"), std::string::npos);
  Process first = waiting(1);
  const Process second = waiting(2);

  const auto all = shown()->getArray("waiters");
  ASSERT_EQ(all->size(), 2U);
  const std::string owner = all->getObject(0)->getValue<std::string>("owner");
  EXPECT_TRUE(owner.ends_with(pidOf(first))) << owner;
  EXPECT_TRUE(all->getObject(1)->getValue<std::string>("owner").ends_with(pidOf(second)));
  EXPECT_GE(all->getObject(0)->getValue<int>("waitedMs"), all->getObject(1)->getValue<int>("waitedMs"));
  EXPECT_FALSE(all->getObject(0)->has("permits"));

  const std::string table = lockkeeper({"show", "k"}).output;
  const auto heading = table.find("\nWAITS");
  ASSERT_NE(heading, std::string::npos) << table;
  EXPECT_LT(heading, table.find(pidOf(first))) << table;
  EXPECT_LT(table.find(pidOf(first)), table.find(pidOf(second))) << table;
  EXPECT_EQ(table.find("SHARE"), std::string::npos) << table;

  // Its connections end with it, so that the server knows, before it misses its next look.
  first.signal(SIGKILL);
  EXPECT_TRUE(waitUntil([&] { return shown()->getArray("waiters")->size() == 1; }, std::chrono::seconds{4}));
  const std::string left = lockkeeper({"show", "k"}).output;
  EXPECT_EQ(left.find(pidOf(first)), std::string::npos) << left;
  EXPECT_NE(left.find(pidOf(second)), std::string::npos) << left;
}

TEST_F(Waiters, AreCountedByListAndWatch) {
  redis.command({"SET", "other", std::string(32, 'a') + "@web:1", "PX", "600000"});
  const Process holder = holding();
  ASSERT_TRUE(fileAppears("up"));
  EXPECT_EQ(lockkeeper({"list"}).output.find("WAIT"), std::string::npos) << "nobody waits";
  const Process first = waiting(1);
  const Process second = waiting(2);
  const std::string table = lockkeeper({"list"}).output;
  EXPECT_NE(table.find("WAITING\nk "), std::string::npos) << table;
  EXPECT_NE(table.find(" 2\nother "), std::string::npos) << table;
  EXPECT_NE(lockkeeper({"list", "--json", "k"}).output.find("\"waiting\":2"), std::string::npos);
  EXPECT_NE(lockkeeper({"list", "--json", "other"}).output.find("\"waiting\":0"), std::string::npos);
  Process watch(commandLine({"watch", "--json", "k"}), [&] {
    ProcessOptions toFile = options();
    toFile.standardOutput = folder / "watched";
    return toFile;
  }());
  EXPECT_TRUE(waitUntil([&] {
    return readFile(folder / "watched").find("\"waiting\":2") != std::string::npos;
  })) << readFile(folder / "watched");
}

TEST_F(Waiters, AreNotMissedByAnAccountThatMayNotSeeThem) {
  const Process holder = holding();
  ASSERT_TRUE(fileAppears("up"));
  const Process one = waiting(1);
  const auto seenBy = [&](const std::string& rights, const std::string& command = "show") {
    redis.command({"ACL", "SETUSER", "u", "reset", "on", ">p", "~*", "&*", "+@all", rights});
    return lockkeeper(
        {command, "--json", "--store", "redis://u:p@127.0.0.1:" + std::to_string(redis.port()), "k"});
  };
  for (const std::string rights : {"-zrange", "-hget"}) {
    const Finished blind = seenBy(rights);
    EXPECT_EQ(blind.exitCode, 78) << blind.output;
    EXPECT_NE(blind.errors.find("+zrange"), std::string::npos) << blind.errors;
    const Finished list = seenBy(rights, "list");
    EXPECT_EQ(list.exitCode, 0) << list.errors;
    EXPECT_NE(list.output.find("\"k\""), std::string::npos) << "its locks: " << list.output;
    EXPECT_EQ(list.output.find("\"waiting\""), std::string::npos) << list.output;
  }
  const Finished deaf = seenBy("-pubsub");  // it cannot ask whether they listen
  EXPECT_NE(deaf.output.find(pidOf(one)), std::string::npos) << deaf.output << deaf.errors;
}

TEST_F(Waiters, AreShownWithWhatTheyWantAndWithoutTheirTokens) {
  const Process holder = holding({"--permits", "2"});
  ASSERT_TRUE(fileAppears("up"));
  const Process whole = waiting(1);
  const Process one = waiting(2, {"--permits", "2"});
  const auto all = shown()->getArray("waiters");
  EXPECT_FALSE(all->getObject(0)->has("permits"));
  EXPECT_EQ(all->getObject(1)->getValue<int>("permits"), 1);
  EXPECT_EQ(all->getObject(1)->getValue<int>("limit"), 2);
  const std::string table = lockkeeper({"show", "k"}).output;
  EXPECT_NE(table.find("all\n"), std::string::npos) << table;
  EXPECT_NE(table.find("1 of 2\n", table.find("WAITS")), std::string::npos) << table;
  const std::string everything = table + lockkeeper({"show", "--json", "k"}).output +
                                 lockkeeper({"list", "--json"}).output + lockkeeper({"list"}).output;
  const std::string tokens = redis.command(
      {"EVAL", "return table.concat(redis.call('ZRANGE', '{k}:lockkeeper:queue', 0, -1), ' ')", "0"});
  ASSERT_GT(tokens.size(), 2 * 32U);
  EXPECT_EQ(everything.find(tokens.substr(0, 32)), std::string::npos) << everything;
}

}  // namespace
}  // namespace lockkeeper::test
