#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#include "app_server.h"
#include "captured_log.h"
#include "decorators.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/memory/memory_driver.h"
#include "lockkeeper/poco/lock_console.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

/// A server with a console, whose operators name themselves in the field X-Operator.
class ConsoleServer {
 public:
  explicit ConsoleServer(int threads = 32) : server_(wrap, replyNothing, threads) {}
  const AppServer& server() const { return server_; }

  /// POSTs an order to break a lock which names none, from this address of the loopback.
  int breakLock(std::vector<std::string> fields = {}, const std::string& from = "127.0.0.1") const {
    for (std::size_t i = 0; i < fields.size(); i += 2)
      fields.insert(fields.begin() + static_cast<long>(i), "-H");
    fields.insert(fields.end(), {"--data", "{}", "--interface", from});
    return server_.ask("/locks/break", fields).status;
  }

  /// The fields of a request that the console's page sends for an operator.
  std::vector<std::string> ofOperator() const {
    const std::string mark = "name=\"token\" content=\"";
    const std::string page = server_.ask("/locks/").body;
    const std::string token = page.substr(page.find(mark) + mark.size(), 32);
    return {"X-Operator: ann", "Origin: http://127.0.0.1:" + std::to_string(server_.port()),
            "X-Console-Token: " + token, "Content-Type: application/json"};
  }

 private:
  static Factory wrap(Factory others) {
    poco::ConsoleOptions options;
    options.operatorOf = [](const HTTPServerRequest& request) -> std::string {
      if (request.get("Authorization", "") == "Bearer right") return "bob";
      return request.get("X-Operator", "");
    };
    return poco::LockConsole(std::make_shared<MemoryDriver>(), std::move(options)).wrap(std::move(others));
  }

  static void replyNothing(HTTPServerRequest&, HTTPServerResponse& response) { reply(response, 200, ""); }

  AppServer server_;
};

TEST(Console, WrongPasswordsCannotBeTriedFast) {
  const ConsoleServer console;
  const auto with = [&](const std::string& password) {
    std::vector<std::string> fields = console.ofOperator();
    fields.front() = "Authorization: Bearer " + password;
    return console.breakLock(fields);
  };
  EXPECT_EQ(with("right"), 400) << "the order names no lock";
  int refused = 0;
  int looked = 0;
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 15; ++i) {
    const int status = with("wrong");
    looked += status == 401;
    refused += status == 429;
  }
  const auto seconds = std::chrono::steady_clock::now() - began;
  EXPECT_EQ(looked + refused, 15);
  EXPECT_GE(looked, 1);
  EXPECT_LE(looked, 1 + std::chrono::ceil<std::chrono::seconds>(seconds).count());
  EXPECT_EQ(console.breakLock(console.ofOperator()), 400) << "whoever sends no password does not notice";
  EXPECT_TRUE(waitUntil([&] { return with("right") == 400; }));
  EXPECT_EQ(with("right"), 400) << "nor does one who knows it, any longer";
}

TEST(Console, WrongPasswordsOfOneMachineKeepNoOperatorOfAnotherOut) {
  const ConsoleServer console;
  const auto with = [&](const std::string& password) {
    std::vector<std::string> fields = console.ofOperator();
    fields.front() = "Authorization: Bearer " + password;
    return fields;
  };
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(console.breakLock(with("wrong"), "127.0.0.2"), 401);
  const int again = console.breakLock(with("right"), "127.0.0.2");
  if (std::chrono::steady_clock::now() - began < std::chrono::seconds{1}) {
    EXPECT_EQ(again, 429);
  }
  EXPECT_EQ(console.breakLock(with("right")), 400) << "the order names no lock";
}

long lines(const std::string& text) { return std::ranges::count(text, '\n'); }

TEST(Console, TheLogHasAllThatOperatorsAskAndSomeOfWhatOthersAsk) {
  const CapturedLog log("lockkeeper.console");  // before the server's threads, which use it
  const ConsoleServer console;
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 12; ++i) EXPECT_EQ(console.breakLock(), 403);
  const std::string ofOthers = log.text();
  const auto periods = 1 + (std::chrono::steady_clock::now() - began) / std::chrono::seconds{10};
  EXPECT_GE(lines(ofOthers), 10) << ofOthers;
  EXPECT_LE(lines(ofOthers), 10 * periods) << ofOthers;
  EXPECT_TRUE(ofOthers.starts_with("somebody at 127.0.0.1 asks to break a lock: ")) << ofOthers;
  for (int i = 0; i < 12; ++i) EXPECT_EQ(console.breakLock(console.ofOperator()), 400);
  const std::string ofOperators = log.text().substr(ofOthers.size());
  EXPECT_EQ(lines(ofOperators), 12) << ofOperators;
  EXPECT_TRUE(ofOperators.starts_with("ann at 127.0.0.1 asks to break a lock: ")) << ofOperators;
  const std::size_t before = log.text().size();
  std::vector<std::string> proxied = console.ofOperator();
  proxied.insert(proxied.end(), {"X-Forwarded-For: 198.51.100.7\x1b", "X-Forwarded-For: 192.0.2.7"});
  EXPECT_EQ(console.breakLock(proxied), 400);
  const std::string behindProxy = log.text().substr(before);
  EXPECT_TRUE(behindProxy.starts_with(
      "ann at 127.0.0.1 (X-Forwarded-For: 198.51.100.7\\x1b, 192.0.2.7) asks to break a lock: "))
      << behindProxy;
}

TEST(Console, PagesThatPollKeepNoThreadOfTheServer) {
  const ConsoleServer console(2);
  std::vector<Poco::Net::StreamSocket> pages;
  for (int i = 0; i < 2; ++i) {
    pages.push_back(console.server().send("GET /locks/state?seen=0 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"));
    char first = 0;
    ASSERT_EQ(pages.back().receiveBytes(&first, 1), 1);
  }
  EXPECT_EQ(console.server().ask("/", {"--max-time", "8"}).status, 200);
}

/// One lock, whose owner is longer than what a connection takes before its client reads.
class LongStore final : public PlainDecorator, public Browsable {
 public:
  LongStore() : PlainDecorator(std::make_shared<MemoryDriver>()) {}

  void list(std::string_view, const std::function<bool(std::string_view key, const Holder& holder)>& visit,
            Instant) override {
    Holder holder;
    holder.owner = std::string(std::size_t{16} << 20, 'a');
    visit("key", holder);
  }
  void* findCapability(const std::type_info& type) noexcept override {
    return type == typeid(Browsable) ? static_cast<Browsable*>(this) : nullptr;
  }
};

TEST(Console, AClientThatReadsNothingKeepsNoThreadOfTheServer) {
  const auto wrap = [](Factory others) {
    return poco::LockConsole(std::make_shared<LongStore>(), {}).wrap(std::move(others));
  };
  const AppServer server(wrap, {}, 2, std::chrono::seconds{1});
  const auto client = server.send("GET /locks/state?seen=0 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  // A thread sanitizer needs many seconds to write so long an answer.
  ASSERT_TRUE(waitUntil([&] { return client.available() > 0; }, std::chrono::minutes{2}));
  EXPECT_TRUE(waitUntil([&] { return server.connections() == 0; }));
}

}  // namespace
}  // namespace lockkeeper::test
