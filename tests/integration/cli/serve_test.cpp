#include <filesystem>
#include <string>
#include <vector>

#include "cli_fixture.h"
#include "curl.h"

namespace lockkeeper::test {
namespace {

/// `lockkeeper serve` on a free port.
class ServeCommand : public CommandTest {
 protected:
  std::string serve(std::vector<std::string> arguments = {}) {
    arguments.insert(arguments.begin(), {"serve", "--listen", "127.0.0.1:0"});
    server_.emplace(start(arguments));
    EXPECT_TRUE(waitUntil([&] { return readFile(folder / "output").ends_with('\n'); }))
        << readFile(folder / "errors");
    std::string url = readFile(folder / "output");
    url.pop_back();
    return url;
  }
  void writePassword(const std::string& text) {
    writeFile(folder / "password", text);
    using std::filesystem::perms;
    std::filesystem::permissions(folder / "password", perms::owner_read | perms::owner_write);
  }
  std::string withPassword() {
    writePassword("correct horse battery staple\n");
    return serve({"--break-password", file("password")});
  }
  /// Until the page's state has the text.
  static bool shows(const std::string& url, const std::string& text) {
    return waitUntil([&] { return curl({url + "state"}).body.find(text) != std::string::npos; });
  }
  static std::string originOf(const std::string& url) { return "Origin: " + url.substr(0, url.size() - 1); }
  static std::string tokenIn(const std::string& page) {
    const std::string before = "name=\"token\" content=\"";
    const auto begin = page.find(before) + before.size();
    return page.substr(begin, page.find('"', begin) - begin);
  }

  std::optional<Process> server_;
};

TEST_F(ServeCommand, ThePageForbidsAllThatItDoesNotNeed) {
  const CurlAnswer page = curl({serve()});
  EXPECT_EQ(page.status, 200);
  const std::string policy = page.header("content-security-policy");
  EXPECT_NE(policy.find("default-src 'none'"), std::string::npos) << policy;
  EXPECT_NE(policy.find("frame-ancestors 'none'"), std::string::npos) << policy;
  EXPECT_EQ(policy.find("unsafe"), std::string::npos) << policy;
  EXPECT_EQ(page.header("x-content-type-options"), "nosniff");
  EXPECT_EQ(page.body.find("http"), std::string::npos) << "it needs nothing from elsewhere";
}

TEST_F(ServeCommand, AnswersOnlyUnderItsOwnName) {
  const std::string url = serve({"--host", "locks.example"});
  EXPECT_EQ(curl({"-H", "Host: evil.example", url}).status, 421);
  EXPECT_EQ(curl({"-H", "Host: evil.example", url + "state"}).status, 421);
  EXPECT_EQ(curl({"-H", "Host: localhost", url}).status, 200);
  EXPECT_EQ(curl({"-H", "Host: locks.example:8443", url}).status, 200);
  EXPECT_EQ(curl({"-H", "Sec-Fetch-Site: cross-site", url + "state"}).status, 403);
}

TEST_F(ServeCommand, ShowsOnlyUnlessAPasswordIsSet) {
  holdForeign("k");
  const std::string url = serve();
  const CurlAnswer refused = curl({"-X", "POST", "-H", originOf(url), url + "break"});
  EXPECT_EQ(refused.status, 403);
  EXPECT_NE(refused.body.find("only shows locks"), std::string::npos) << refused.body;
  EXPECT_FALSE(isFree("k"));
}

TEST_F(ServeCommand, BreaksOnlyForItsOwnPageAndItsOperators) {
  const std::string url = withPassword();
  const std::string token = "X-Console-Token: " + tokenIn(curl({url}).body);
  const std::string password = "Authorization: Bearer correct horse battery staple";
  const auto post = [&](const std::vector<std::string>& fields) {
    std::vector<std::string> line{"-X", "POST",
                                  "-H", "Content-Type: application/json",
                                  "-d", R"({"grant":1,"key":"k","owner":null,"fence":null})"};
    for (const std::string& field : fields) line.insert(line.end(), {"-H", field});
    line.push_back(url + "break");
    return curl(line).status;
  };
  EXPECT_EQ(post({token, password}), 403) << "no origin";
  EXPECT_EQ(post({token, password, "Origin: http://evil.example"}), 403);
  EXPECT_EQ(post({"X-Console-Token: 0", password, originOf(url)}), 403);
  EXPECT_EQ(post({token, originOf(url)}), 401);
  EXPECT_EQ(post({token, originOf(url), password + "x"}), 401);
  EXPECT_EQ(post({token, originOf(url)}), 401) << "a wrong password holds up only those who send one";
  EXPECT_TRUE(waitUntil([&] {
    return post({token, originOf(url), password}) == 409;
  })) << "nobody has seen such a grant";
}

TEST_F(ServeCommand, ShowsThePhasesOfAMigration) {
  const RedisServer old;
  RedisServer state;
  writeFile(folder / "shop.properties", "lockkeeper.store = " + redis.uri() +
                                            "\nlockkeeper.migration.from = " + old.uri() +
                                            "\nlockkeeper.migration.stateStore = " + state.uri() +
                                            "\nlockkeeper.migration.name = shop\n");
  const std::string config = file("shop.properties");
  const std::string url = serve({"--config", config, "--interval", "100ms"});
  const auto showsPhases = [&](const std::string& phases) {
    return waitUntil([&] {
      (void)curl({url + "state"});  // as the page asks
      return curl({url + "activity"}).body.find(R"("migrations":[["shop",")" + phases) != std::string::npos;
    });
  };
  EXPECT_TRUE(showsPhases(R"(none yet",null]])"));
  ASSERT_EQ(lockkeeper({"run", "--config", config, "k", "--", "true"}).exitCode, 0);
  EXPECT_TRUE(showsPhases(R"(* = both, on the way to * = legacy",)"));
  ASSERT_EQ(lockkeeper({"migrate", "advance", "25% = modern", "--config", config}).exitCode, 0);
  EXPECT_TRUE(showsPhases(R"(* = both, on the way to 25% = modern, * = legacy",)"));
  const Finished status = lockkeeper({"migrate", "status", "--json", "--config", config});
  EXPECT_NE(status.output.find(R"("members":[])"), std::string::npos)
      << "it takes no part: " << status.output;
  state.kill();
  EXPECT_TRUE(showsPhases("not known: "));
  redis.command({"SET", "later", std::string(32, 'a') + "@web:1"});
  EXPECT_TRUE(shows(url, "\"later\"")) << "locks are shown nevertheless";
}

TEST_F(ServeCommand, TellsThePageWhichKeyNeverEnds) {
  redis.command({"SET", "k", std::string(32, 'a') + "@web:1"});
  const std::string url = serve();
  EXPECT_TRUE(shows(url, R"("k","web:1",)"));
  EXPECT_TRUE(shows(url, ",-1,null]"));
}

TEST_F(ServeCommand, SaysWhatIsWrong) {
  const Finished open = lockkeeper({"serve", "--listen", "0.0.0.0:0"});
  EXPECT_EQ(open.exitCode, 64);
  EXPECT_NE(open.errors.find("loopback"), std::string::npos) << open.errors;
  writePassword("short\n");
  const Finished weak = lockkeeper({"serve", "--break-password", file("password")});
  EXPECT_EQ(weak.exitCode, 78);
  EXPECT_NE(weak.errors.find("too short"), std::string::npos) << weak.errors;
  writePassword("correct horse battery staple\n");
  for (const auto perms : {std::filesystem::perms::others_read, std::filesystem::perms::others_write}) {
    std::filesystem::permissions(folder / "password", perms, std::filesystem::perm_options::add);
    const Finished open = lockkeeper({"serve", "--break-password", file("password")});
    std::filesystem::permissions(folder / "password", perms, std::filesystem::perm_options::remove);
    EXPECT_EQ(open.exitCode, 78);
    EXPECT_NE(open.errors.find("every account"), std::string::npos) << open.errors;
    EXPECT_NE(open.errors.find(file("password")), std::string::npos) << open.errors;
  }
}

}  // namespace
}  // namespace lockkeeper::test
