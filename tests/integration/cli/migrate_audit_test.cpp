#include <Poco/JSON/Object.h>
#include <Poco/JSON/Parser.h>

#include <map>
#include <sstream>
#include <string>

#include "cli_fixture.h"

namespace lockkeeper::test {
namespace {

class MigrateAudit : public CommandTest {
 protected:
  std::string store() const {
    return "redis+legacy://127.0.0.1:" + std::to_string(redis.port()) + "/0?keyPrefix=lock:";
  }
  Finished audit(const std::vector<std::string>& arguments = {}) const {
    std::vector<std::string> line{"migrate", "audit", "--store", store()};
    line.insert(line.end(), arguments.begin(), arguments.end());
    return lockkeeper(line);
  }
  std::string inSeconds(long long from) const {
    return std::to_string(std::stoll(redis.command({"TIME"})) + from);
  }

  void makeOneOfEach() const {
    redis.command({"SET", "lock:held", inSeconds(100)});
    redis.command({"SET", "lock:expired", inSeconds(-100), "EX", "1000"});
    redis.command({"SET", "lock:phantom", inSeconds(-100)});
    redis.command({"SET", "lock:junk", "i:17;"});
    redis.command({"HSET", "lock:hash", "field", "value"});
    redis.command({"SET", "lock:ours", inSeconds(100) + ":" + std::string(32, 'a') + "@web:1", "EX", "200"});
    redis.command({"SET", "other", inSeconds(100)});
  }
};

TEST_F(MigrateAudit, PrintsTheClassOfEachKeyUnderThePrefixAndASummary) {
  makeOneOfEach();
  const Finished done = audit();
  EXPECT_EQ(done.exitCode, 0) << done.errors;
  for (const std::string line :
       {"held                 held  (for ", "expired              expired  (expired 1 min",
        "phantom without TTL  phantom  (expired 1 min", "foreign value        junk  (a serialized PHP number",
        "foreign value        hash  (a key of the type hash)", "our value            ours  (for ",
        "6 keys: held 1, expired 1, phantom without TTL 1, foreign value 2, our value 1\n"}) {
    EXPECT_NE(done.output.find(line), std::string::npos) << done.output << "has no " << line;
  }
  EXPECT_NE(done.output.find(", web:1)"), std::string::npos) << done.output;
  EXPECT_EQ(done.output.find("other"), std::string::npos) << done.output;
  EXPECT_EQ(done.output.find("aaaa"), std::string::npos) << "the token is secret";
}

TEST_F(MigrateAudit, EndsWhenNobodyReads) {
  constexpr int keys = 20'000;
  redis.command({"EVAL", "for i = 1, ARGV[1] do redis.call('SET', 'lock:' .. i, '100') end", "0",
                 std::to_string(keys)});
  const std::string piped = LOCKKEEPER_COMMAND " migrate audit --store '" + store() + "' | head -n 1";
  Process pipe({"bash", "-c", piped}, options());
  EXPECT_EQ(pipe.waitFor(std::chrono::seconds{20}), 0);
  const std::string asked = redis.command({"INFO", "commandstats"});
  const std::string calls = "cmdstat_evalsha:calls=";
  const auto found = asked.find(calls);
  ASSERT_NE(found, std::string::npos) << asked;
  EXPECT_LT(std::stoi(asked.substr(found + calls.size())), keys / 2);
}

TEST_F(MigrateAudit, ProgramsReadJson) {
  makeOneOfEach();
  const Finished done = audit({"--json"});
  EXPECT_EQ(done.exitCode, 0) << done.errors;
  std::map<std::string, Poco::JSON::Object::Ptr> byKey;
  std::istringstream text(done.output);
  for (std::string each; std::getline(text, each);) {
    const auto object = Poco::JSON::Parser().parse(each).extract<Poco::JSON::Object::Ptr>();
    byKey.emplace(object->optValue<std::string>("key", "(summary)"), object);
  }
  ASSERT_EQ(byKey.size(), 7U) << done.output;
  EXPECT_EQ(byKey.at("phantom")->getValue<std::string>("class"), "phantom without TTL");
  EXPECT_LT(byKey.at("phantom")->getValue<int>("remainingMs"), -90'000);
  EXPECT_EQ(byKey.at("ours")->getValue<std::string>("owner"), "web:1");
  EXPECT_TRUE(byKey.at("held")->isNull("owner"));
  EXPECT_TRUE(byKey.at("held")->isNull("what"));
  EXPECT_NE(byKey.at("junk")->getValue<std::string>("what").find("a serialized PHP number"),
            std::string::npos);
  EXPECT_EQ(byKey.at("(summary)")->getObject("counts")->getValue<int>("foreign value"), 2);
  EXPECT_EQ(done.output.find("aaaa"), std::string::npos) << "the token is secret";
}

TEST_F(MigrateAudit, NobodyForgesARowOrControlsTheTerminal) {
  const std::string value = inSeconds(100) + ":" + std::string(32, 'a') + "@";
  redis.command({"SET", "lock:k", value + "x)\nheld                 forged  (for ever", "EX", "200"});
  redis.command({"SET", "lock:l", value + "\x1b[31mred", "EX", "200"});
  redis.command({"SET", "lock:m\x1b[31m", inSeconds(100)});
  const Finished done = audit();
  EXPECT_EQ(done.exitCode, 0) << done.errors;
  EXPECT_EQ(done.output.find("\nheld                 forged"), std::string::npos) << done.output;
  EXPECT_EQ(done.output.find('\x1b'), std::string::npos) << done.output;
  EXPECT_NE(done.output.find("'\\x1b[31mred'"), std::string::npos) << done.output;
}

TEST_F(MigrateAudit, OnlyLooksAndNeverByKeys) {
  makeOneOfEach();
  const std::string before = redis.command({"DEBUG", "DIGEST"});
  EXPECT_EQ(audit().exitCode, 0);
  EXPECT_EQ(redis.command({"DEBUG", "DIGEST"}), before);
  const std::string calls = redis.command({"INFO", "commandstats"});
  EXPECT_NE(calls.find("cmdstat_scan"), std::string::npos);
  EXPECT_EQ(calls.find("cmdstat_keys"), std::string::npos);
}

TEST_F(MigrateAudit, TakesAPrefixBelowTheStores) {
  makeOneOfEach();
  const Finished done = audit({"h"});
  EXPECT_NE(done.output.find("2 keys: held 1, expired 0, phantom without TTL 0, foreign value 1"),
            std::string::npos)
      << done.output;
}

TEST_F(MigrateAudit, ReadsDigitsThatArePureLocksOfOurs) {
  Process holder = start({"run", "--store", store() + "&pure=true", "k", "--", "sh", "-c",
                          "touch " + file("up") + "; exec sleep 60"});
  ASSERT_TRUE(fileAppears("up"));
  EXPECT_NE(audit().output.find("held                 k"), std::string::npos);
  const Finished done = lockkeeper({"migrate", "audit", "--store", store() + "&pure=true"});
  EXPECT_NE(done.output.find("our value            k"), std::string::npos) << done.output;
  EXPECT_NE(done.output.find("1 key: held 0"), std::string::npos) << done.output;
}

TEST_F(MigrateAudit, RefusesWhatItCannotDo) {
  const auto refused = [&](const std::vector<std::string>& line, int exitCode, const std::string& named) {
    const Finished done = lockkeeper(line);
    EXPECT_EQ(done.exitCode, exitCode) << done.errors;
    EXPECT_NE(done.errors.find(named), std::string::npos) << done.errors;
    EXPECT_EQ(done.output, "");
  };
  refused({"migrate"}, 64, "audit");
  refused({"migrate", "adit"}, 64, "adit");
  refused({"migrate", "audit", "--store", store(), "a", "b"}, 64, "PREFIX");
  refused({"migrate", "audit"}, 78, "redis+legacy://");
}

}  // namespace
}  // namespace lockkeeper::test
