#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "curl.h"
#include "fault_proxy.h"
#include "free_port.h"
#include "process.h"
#include "redis_server.h"
#include "temp_folder.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

std::string between(const std::string& text, const std::string& before, const std::string& after) {
  const auto begin = text.find(before);
  if (begin == std::string::npos) return "";
  const auto from = begin + before.size();
  return text.substr(from, text.find(after, from) - from);
}

/// The sms_gateway program, its settings and what it has sent.
class SmsGateway : public ::testing::Test {
 protected:
  static constexpr const char* limits =
      "lockkeeper.limits.perPhone.rate = 2/h\n"
      "lockkeeper.http.routes.sms.match = POST /sms\n"
      "lockkeeper.http.routes.sms.limits.perPhone = json phone | e164\n";

  /// How often a message was sent, without and with the mark of a redelivery.
  struct Sent {
    int plain = 0;
    int marked = 0;
  };

  void configure(const std::string& settings, int perSecond = 1000, const std::string& lease = "1s") {
    writeFile(folder_ / "settings", settings +
                                        "lockkeeper.limits.sending.kind = leaky-queue\n"
                                        "lockkeeper.limits.sending.rate = " +
                                        std::to_string(perSecond) +
                                        "/s\n"
                                        "lockkeeper.limits.sending.burst = 1000\n"
                                        "smsGateway.workerLease = " +
                                        lease + "\n");
  }

  std::unique_ptr<Process> start(const std::string& store, const std::vector<std::string>& options) {
    const std::string name = "output" + std::to_string(++started_);
    std::vector<std::string> command{SMS_GATEWAY, "--config=" + (folder_ / "settings").string(),
                                     "--store=" + store, "--outbox=" + (folder_ / "outbox").string(),
                                     "--port=" + std::to_string(port_)};
    command.insert(command.end(), options.begin(), options.end());
    auto process = std::make_unique<Process>(
        command, ProcessOptions{.standardOutput = folder_ / name, .standardError = folder_ / "errors"});
    if (!waitUntil([&] { return output(name).find("Ctrl-C") != std::string::npos; })) {
      throw std::runtime_error("sms_gateway does not start: " + output("errors"));
    }
    return process;
  }

  CurlAnswer post(const std::string& body) const {
    return curl({"--data", body, "http://127.0.0.1:" + std::to_string(port_) + "/sms"});
  }
  CurlAnswer send(const std::string& phone) const {
    return post(R"({"phone":")" + phone + R"(","text":"a } b"})");
  }

  /// The id of a message that was accepted; empty when it was not.
  std::string accepted(int number) const {
    const CurlAnswer answer = send("+49" + std::to_string(number));
    return answer.status == 202 ? between(answer.body, R"("id":")", "\"") : "";
  }

  std::map<std::string, Sent> sent() const {
    std::map<std::string, Sent> messages;
    std::istringstream lines(output("outbox"));
    for (std::string line; std::getline(lines, line);) {
      Sent& message = messages[between(line, R"("id":")", "\"")];
      ++(line.starts_with("sent again {") ? message.marked : message.plain);
    }
    return messages;
  }
  bool haveSent(const std::vector<std::string>& ids) const {
    const auto messages = sent();
    return std::ranges::all_of(ids, [&](const std::string& id) { return messages.contains(id); });
  }

  /// Stops `worker` at a moment when `workers` workers, which are all, hold a message that they have not
  /// sent.
  bool pauseInTheMiddle(const RedisServer& redis, const Process& worker, std::size_t messages,
                        std::size_t workers) const {
    return waitUntil([&] {
      worker.pause();
      const std::size_t waiting = std::stoul(redis.command({"LLEN", "sms:waiting"}));
      if (waiting + sent().size() + workers == messages) return true;
      worker.resume();
      return false;
    });
  }

  /// Returns how many redeliveries there were.
  int expectNoneLostAndNoneTwiceUnmarked(const std::vector<std::string>& ids) const {
    EXPECT_TRUE(waitUntil([&] { return haveSent(ids); }, seconds{60})) << output("errors");
    int marked = 0;
    for (const auto& [id, message] : sent()) {
      EXPECT_LE(message.plain, 1) << id;
      marked += message.marked;
    }
    return marked;
  }

  std::string output(const std::string& name) const { return readFile(folder_ / name); }
  const TempFolder& folder() const { return folder_; }

 private:
  TempFolder folder_;
  const std::uint16_t port_ = freePort();
  int started_ = 0;
};

TEST_F(SmsGateway, SendsWhatItAcceptsAndAcceptsWhatTheLimitsAllow) {
  configure(limits);
  const auto gateway = start("memory:", {});
  const std::vector<std::string> ids{accepted(1), accepted(1), accepted(2)};
  EXPECT_EQ(std::ranges::count(ids, ""), 0);
  EXPECT_EQ(send("+491").status, 429);
  EXPECT_TRUE(waitUntil([&] { return haveSent(ids); }));
  EXPECT_EQ(sent().size(), ids.size());
}

TEST_F(SmsGateway, AllSpellingsOfANumberShareALimit) {
  configure(limits);
  const auto gateway = start("memory:", {});
  EXPECT_EQ(send("+49 171 2345678").status, 202);
  EXPECT_EQ(send("+491712345678").status, 202);
  EXPECT_EQ(send("0049 (171) 234-5678").status, 429);
  EXPECT_TRUE(waitUntil([&] { return sent().size() == 2; }));
  const std::string outbox = output("outbox");
  const std::string number = R"("phone":"+491712345678")";
  EXPECT_NE(outbox.find(number, outbox.find(number) + 1), std::string::npos) << "once in each: " << outbox;
}

TEST_F(SmsGateway, NamesWhatIsWrongWithAMessage) {
  configure("");
  const auto gateway = start("memory:", {});
  for (const char* body : {"", "{", "[]", R"({"phone":"1"})", R"({"text":"a"})", R"({"phone":1,"text":"a"})",
                           R"({"phone":"","text":"a"})", R"({"phone":"123456789012345678901","text":"a"})",
                           R"({"phone":"030 1","text":"a"})", R"({"phone":"00 0491","text":"a"})",
                           R"({"phone":"+49x1","text":"a"})", R"({"phone":"+491\n","text":"a"})"}) {
    const CurlAnswer answer = post(body);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_NE(answer.body.find("\"error\""), std::string::npos) << answer.body;
  }
  EXPECT_EQ(sent().size(), 0U);
}

TEST_F(SmsGateway, SendsAtAConstantRateHoweverManyWorkersThereAre) {
  constexpr int messages = 21;
  constexpr int perSecond = 10;
  const RedisServer redis;
  configure("", perSecond);
  const auto server = start(redis.uri(), {"--serve"});
  std::vector<std::string> ids;
  for (int i = 0; i < messages; ++i) ids.push_back(accepted(i));
  EXPECT_EQ(std::ranges::count(ids, ""), 0);
  const auto begin = steady_clock::now();
  const auto first = start(redis.uri(), {"--work"});
  const auto second = start(redis.uri(), {"--work"});
  EXPECT_TRUE(waitUntil([&] { return haveSent(ids); }));
  EXPECT_GE(steady_clock::now() - begin, milliseconds{1000 * (messages - 1) / perSecond});
}

TEST_F(SmsGateway, LosesNoMessageWhenWorkersAreKilled) {
  constexpr int kills = 4;
  constexpr std::size_t sentBetweenKills = 3;
  constexpr std::size_t left = 15;  // enough for three seconds
  const RedisServer redis;
  configure("", 5);  // slow enough that a worker holds a message nearly all the time
  const auto server = start(redis.uri(), {"--serve"});
  std::vector<std::string> ids;
  auto worker = start(redis.uri(), {"--work"});
  const auto other = start(redis.uri(), {"--work"});
  for (int i = 0; i < kills; ++i) {
    const std::size_t before = sent().size();
    while (ids.size() < before + left) ids.push_back(accepted(static_cast<int>(ids.size())));
    EXPECT_TRUE(waitUntil([&] { return sent().size() >= before + sentBetweenKills; }));
    if (i % 2 == 0) {
      EXPECT_TRUE(pauseInTheMiddle(redis, *worker, ids.size(), 2));
    }
    worker->signal(SIGKILL);
    worker = start(redis.uri(), {"--work"});
  }
  EXPECT_EQ(std::ranges::count(ids, ""), 0);
  const int redeliveries = expectNoneLostAndNoneTwiceUnmarked(ids);
  EXPECT_GE(redeliveries, 1) << "no worker was killed in the middle, so this run has shown nothing";
  EXPECT_EQ(sent().size(), ids.size());
}

TEST_F(SmsGateway, AWorkerThatWasTakenForDeadDoesNotSendWhatOthersHaveTakenBack) {
  const RedisServer redis;
  configure("", 5);
  const auto server = start(redis.uri(), {"--serve"});
  std::vector<std::string> ids;
  for (int i = 0; i < 12; ++i) ids.push_back(accepted(i));
  const auto sleeper = start(redis.uri(), {"--work"});
  EXPECT_TRUE(waitUntil([&] { return sent().size() >= 2; }));
  EXPECT_TRUE(pauseInTheMiddle(redis, *sleeper, ids.size(), 1));
  const auto other = start(redis.uri(), {"--work"});
  EXPECT_TRUE(waitUntil([&] { return output("outbox").find("sent again") != std::string::npos; }));
  sleeper->resume();
  EXPECT_EQ(expectNoneLostAndNoneTwiceUnmarked(ids), 1);
  EXPECT_TRUE(waitUntil([&] { return output("errors").find("taken for dead") != std::string::npos; }))
      << "it goes on, under another name";
  for (const auto& [id, message] : sent()) EXPECT_EQ(message.plain + message.marked, 1) << id;
}

TEST_F(SmsGateway, LosesNothingWhenRepliesAreCut) {
  const RedisServer redis;
  FaultProxy proxy(redis.port());
  configure("", 200);
  const auto server = start(redis.uri(), {"--serve"});
  const auto worker = start("redis://127.0.0.1:" + std::to_string(proxy.port()) + "/0", {"--work"});
  std::vector<std::string> ids;
  std::size_t hit = 0;
  for (std::size_t bytes = 0; bytes < 200; bytes += 13) {
    proxy.cutReplies(bytes, bytes % 2 == 0 ? Ending::fin : Ending::rst);
    for (int i = 0; i < 3; ++i) ids.push_back(accepted(static_cast<int>(ids.size())));
    EXPECT_TRUE(waitUntil([&] { return haveSent(ids); })) << output("errors");
    hit += proxy.fired();
  }
  EXPECT_GE(hit, 10U) << "most cuts have hit nothing";
  EXPECT_EQ(std::ranges::count(ids, ""), 0);
  expectNoneLostAndNoneTwiceUnmarked(ids);
  EXPECT_EQ(sent().size(), ids.size());
}

TEST_F(SmsGateway, DoesNotSendAgainWhatItKnowsToHaveSent) {
  const RedisServer redis;
  FaultProxy proxy(redis.port());
  configure("", 1, "60s");
  const auto server = start(redis.uri(), {"--serve"});
  std::vector<std::string> ids{accepted(0), accepted(1), accepted(2)};
  const auto worker = start("redis://127.0.0.1:" + std::to_string(proxy.port()) + "/0", {"--work"});
  // It has sent one, holds the next and knows when to send it: nothing is on its way to it.
  std::size_t passed = 0;
  EXPECT_TRUE(waitUntil([&] {
    const std::size_t before = std::exchange(passed, proxy.replyBytes());
    if (passed != before) return false;
    std::istringstream keys(redis.command({"KEYS", "*sending:all*"}));
    std::string queue;
    std::getline(keys, queue);
    return sent().size() == 1 && redis.command({"LLEN", "sms:waiting"}) == "1" &&
           std::stoi(redis.command({"PTTL", queue})) > 1000;
  }));
  proxy.set({.kind = ProxyFault::Kind::blackhole});  // that it is done does not get through
  EXPECT_TRUE(waitUntil([&] { return output("errors").find("worker:") != std::string::npos; }));
  EXPECT_TRUE(waitUntil([&] { return sent().size() == 2; }));
  proxy.passThrough();
  EXPECT_EQ(expectNoneLostAndNoneTwiceUnmarked(ids), 0);
}

TEST_F(SmsGateway, ABlockedReadSurvivesAServerThatVanishes) {
  RedisServer redis({.arguments = {"--appendonly", "yes", "--appendfsync", "always"}});
  FaultProxy proxy(redis.port());
  configure("");
  const auto server = start(redis.uri(), {"--serve"});
  const auto worker = start("redis://127.0.0.1:" + std::to_string(proxy.port()) + "/0", {"--work"});
  std::vector<std::string> ids{accepted(0)};
  EXPECT_TRUE(waitUntil([&] { return haveSent(ids); }));
  proxy.set({.kind = ProxyFault::Kind::blackhole});  // the connection stays, and nothing comes any more
  ids.push_back(accepted(1));
  EXPECT_TRUE(waitUntil([&] { return output("errors").find("worker:") != std::string::npos; }));
  proxy.passThrough();
  redis.restart();
  ids.push_back(accepted(2));
  if (ids.back().empty()) ids.back() = accepted(3);  // the server's own connection was a dead one
  EXPECT_EQ(std::ranges::count(ids, ""), 0);
  expectNoneLostAndNoneTwiceUnmarked(ids);
}

TEST_F(SmsGateway, SaysWhenTheQueueIsFull) {
  const RedisServer redis;
  configure("smsGateway.queueSize = 2\n");
  const auto server = start(redis.uri(), {"--serve"});
  EXPECT_EQ(send("+491").status, 202);
  EXPECT_EQ(send("+491").status, 202);
  const CurlAnswer full = send("+491");
  EXPECT_EQ(full.status, 503);
  EXPECT_EQ(full.header("retry-after"), "1");
}

TEST_F(SmsGateway, TakesNewLimitsWithoutARestart) {
  configure(limits);
  const auto gateway = start("memory:", {});
  EXPECT_EQ(send("+491").header("ratelimit-policy"), R"("perPhone";q=2;w=3600)");
  const auto perHour = [](int rate) {
    return "lockkeeper.limits.perPhone.rate = " + std::to_string(rate) +
           "/h\nlockkeeper.http.routes.sms.match = POST /sms\n"
           "lockkeeper.http.routes.sms.limits.perPhone = json phone\n";
  };
  configure(perHour(7));
  gateway->signal(SIGHUP);
  EXPECT_TRUE(
      waitUntil([&] { return send("+492").header("ratelimit-policy") == R"("perPhone";q=7;w=3600)"; }));
  configure("lockkeeper.limits.perPhone.rate = often\n");
  gateway->signal(SIGHUP);
  EXPECT_TRUE(waitUntil([&] { return output("errors").find("stay as they were") != std::string::npos; }));
  EXPECT_EQ(send("+493").header("ratelimit-policy"), R"("perPhone";q=7;w=3600)");
  configure(perHour(9) + "lockkeeper.tasks.report.atMost = 1ms\n");
  gateway->signal(SIGHUP);
  EXPECT_TRUE(waitUntil([&] { return output("errors").find("tasks.report") != std::string::npos; }));
  EXPECT_EQ(send("+494").header("ratelimit-policy"), R"("perPhone";q=7;w=3600)") << "all of it or nothing";
}

TEST_F(SmsGateway, LogsInWithAPasswordFromAFile) {
  const RedisServer redis({.password = "s3cr3t"});
  writeFile(folder() / "password", "s3cr3t\n");
  configure("");
  const auto gateway = start("redis://127.0.0.1:" + std::to_string(redis.port()) +
                                 "/0?passwordFile=" + (folder() / "password").string(),
                             {});
  const std::vector<std::string> ids{accepted(1)};
  EXPECT_NE(ids.front(), "");
  EXPECT_TRUE(waitUntil([&] { return haveSent(ids); })) << output("errors");
}

TEST_F(SmsGateway, RefusesSettingsThatMakeNoSense) {
  const auto codeOf = [&](const std::string& settings, const std::vector<std::string>& options) {
    configure(settings);
    std::vector<std::string> command{SMS_GATEWAY, "--config=" + (folder() / "settings").string()};
    command.insert(command.end(), options.begin(), options.end());
    const Finished finished = runToEnd(command);
    EXPECT_TRUE(finished.errors.starts_with("sms_gateway: ")) << finished.errors;
    EXPECT_EQ(std::ranges::count(finished.errors, '\n'), 1) << finished.errors;
    return finished.exitCode;
  };
  EXPECT_EQ(codeOf("", {"--store=memory:", "--work"}), 78);
  EXPECT_EQ(codeOf("", {"--store=rediss://127.0.0.1"}), 78);
  EXPECT_EQ(codeOf("smsGateway.prot = 1\n", {}), 78);
  EXPECT_EQ(codeOf("lockkeeper.limits.sending.rat = 1/s\n", {}), 78);
  EXPECT_EQ(codeOf("", {"--unheard-of"}), 64);
}

}  // namespace
}  // namespace lockkeeper::test
