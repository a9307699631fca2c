#include <mutex>
#include <thread>
#include <vector>

#include "sentinel_fixture.h"
#include "tls_files.h"

// What is wrong with the sentinels, or with what is said about them.

namespace lockkeeper::test {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos && text.find('\n') == std::string::npos;
}

TEST(SentinelSetUp, AMajorityDecidesAndIsNeeded) {
  SentinelGroup group({.replicas = 0});
  const RedisServer other;
  const auto misled = [&](std::size_t index) {
    group.sentinel(index).command({"SENTINEL", "REMOVE", "mymaster"});
    group.sentinel(index).command(
        {"SENTINEL", "MONITOR", "mymaster", "127.0.0.1", std::to_string(other.port()), "2"});
  };
  const std::string sentinel = faultOf("redis://127.0.0.1:" + std::to_string(group.sentinel(0).port()));
  EXPECT_TRUE(contains(sentinel, "is a sentinel, which keeps no locks")) << sentinel;
  misled(0);
  const Claimant who{};
  EXPECT_TRUE(granted(openUri(group.uri())->acquire(who.request())));
  EXPECT_EQ(group.first().command({"EXISTS", who.key}), "1");

  group.sentinel(1).command({"SENTINEL", "REMOVE", "mymaster"});
  const std::string few = faultOf(group.uri());
  EXPECT_TRUE(contains(few, "fewer than 2 of 3 sentinels agree on the master")) << few;
  EXPECT_TRUE(contains(few, "1 for 127.0.0.1:" + std::to_string(other.port()))) << few;
  EXPECT_TRUE(contains(few, "1 without a master of that name")) << few;
  EXPECT_EQ(few.find("config"), std::string::npos) << few;

  group.sentinel(2).command({"SENTINEL", "REMOVE", "mymaster"});
  const std::string unknown = faultOf(group.uri());
  EXPECT_TRUE(contains(unknown, "the sentinels do not know a master of the name 'mymaster'")) << unknown;
  EXPECT_EQ(unknown.find("unavailable"), std::string::npos) << unknown;
}

// Of the notes.
struct SentinelNotes final : Listener {
  void on(const Event& event) override {
    const std::lock_guard guard(mutex);
    if (event.kind == EventKind::noted)
      texts.push_back(std::string(event.store) + ": " + std::string(event.text));
  }
  std::vector<std::string> about(const std::string& part) {
    const std::lock_guard guard(mutex);
    std::vector<std::string> found;
    for (const std::string& each : texts) {
      if (each.find(part) != std::string::npos) found.push_back(each);
    }
    return found;
  }
  std::mutex mutex;
  std::vector<std::string> texts;
};

TEST(SentinelSetUp, OneThatIsSetUpWronglyIsToldAndRefusesNoNewProcess) {
  SentinelGroup group({.replicas = 0});
  const RedisServer one;
  const RedisServer another;
  // With one of these in the place of a sentinel.
  const auto replaced = [&](std::string uri, std::size_t sentinel, const RedisServer& server) {
    const std::string port = ":" + std::to_string(group.sentinel(sentinel).port());
    return uri.replace(uri.find(port), port.size(), ":" + std::to_string(server.port()));
  };
  const std::string oneOfThree = replaced(group.uri(), 1, one);
  const auto notes = std::make_shared<SentinelNotes>();
  Environment environment;
  environment.listener = notes;
  StoreRegistry registry;
  redis::use(registry);
  const auto driver = registry.open(oneOfThree, environment);
  EXPECT_TRUE(granted(driver->acquire(Claimant{}.request())));
  std::this_thread::sleep_for(1100ms);  // so that the sentinels are asked again
  EXPECT_TRUE(granted(driver->acquire(Claimant{}.request())));
  const auto told = notes->about("this sentinel has no vote");
  ASSERT_EQ(told.size(), 1U) << "told once";
  EXPECT_NE(told[0].find("127.0.0.1:" + std::to_string(one.port()) + "/0 is not a sentinel"),
            std::string::npos)
      << told[0];

  const std::string most = faultOf(replaced(oneOfThree, 2, another));
  EXPECT_TRUE(contains(most, "is not a sentinel")) << most;
  EXPECT_EQ(most.find("unavailable"), std::string::npos) << most;
}

TEST(SentinelSetUp, AMajorityThatIsDownIsUnavailableAndAMinorityIsNothing) {
  SentinelGroup group({.replicas = 0});
  group.sentinel(0).pause();
  const auto driver = openUri(group.uri());
  EXPECT_TRUE(granted(driver->acquire(Claimant{}.request())));
  group.sentinel(1).kill();
  const std::string fault = faultOf(group.uri());
  EXPECT_TRUE(contains(fault, "fewer than 2 of 3 sentinels agree")) << fault;
  EXPECT_EQ(fault.find("config"), std::string::npos) << fault;
  // Who has found the master stays there as long as no other one is named.
  std::this_thread::sleep_for(1100ms);  // so that the sentinels are asked again
  EXPECT_TRUE(granted(driver->acquire(Claimant{}.request())));
}

TEST(SentinelSetUp, AUserOfASentinelNeedsNoMoreThanTheDocumentedRights) {
  SentinelGroup group({.replicas = 0});
  for (std::size_t index = 0; index < 3; ++index) {
    ASSERT_EQ(group.sentinel(index).command({"ACL", "SETUSER", "looker", "on", ">looks", "-@all", "+auth",
                                             "+client", "+info", "+sentinel|get-master-addr-by-name"}),
              "OK");
  }
  const TempFolder folder;
  writeFile(folder / "password", "looks\n");
  const std::string uri =
      group.uri("sentinelUser=looker&sentinelPasswordFile=" + (folder / "password").string());
  EXPECT_TRUE(granted(openUri(uri)->acquire(Claimant{}.request())));
}

TEST(SentinelSetUp, WrongPasswordsServersAndCertificatesAreNamed) {
  SentinelGroup group({.replicas = 0, .sentinelPassword = "open/sesame"});
  const TempFolder folder;
  writeFile(folder / "right", "open/sesame\n");
  writeFile(folder / "wrong", "guess\n");
  const auto with = [&](const char* file) {
    return group.uri("sentinelPasswordFile=" + (folder / file).string());
  };
  EXPECT_EQ(faultOf(with("right")), "no error");
  const std::string none = faultOf(group.uri());
  EXPECT_TRUE(contains(none, "asks for a password")) << none;
  const std::string wrong = faultOf(with("wrong"));
  EXPECT_TRUE(contains(wrong, "refused the user name or the password")) << wrong;
  EXPECT_EQ(wrong.find("guess"), std::string::npos) << wrong;

  const RedisServer server({.tls = true});
  const std::string port = std::to_string(server.port());
  const std::string noSentinel = faultOf("redis+sentinel://127.0.0.1:" + port + "/mymaster");
  EXPECT_TRUE(contains(noSentinel, "is not a sentinel")) << noSentinel;
  const std::string tlsPort = std::to_string(server.tlsPort());
  const std::string certificate = faultOf("redis+sentinel://127.0.0.1:" + tlsPort + "/mymaster?tls=on");
  EXPECT_TRUE(contains(certificate, "not signed by a trusted authority")) << certificate;
}

}  // namespace
}  // namespace lockkeeper::test
