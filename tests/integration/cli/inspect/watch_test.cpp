#include <Poco/JSON/Parser.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli_fixture.h"

namespace lockkeeper::test {
namespace {

using Poco::JSON::Object;

Object::Ptr parsed(const std::string& line) {
  return Poco::JSON::Parser().parse(line).extract<Object::Ptr>();
}

class WatchCommand : public CommandTest {
 protected:
  /// As a process of this library holds it.
  void hold(const std::string& key, const std::string& owner, char token = 'a') const {
    redis.command({"SET", key, std::string(32, token) + "@" + owner, "PX", "600000"});
  }

  std::vector<std::string> lines() const {
    std::istringstream text(readFile(folder / "output"));
    std::vector<std::string> all;
    for (std::string line; std::getline(text, line);) all.push_back(line);
    return all;
  }
  /// Whether something was sent to that port of this machine that its server has not read.
  static bool hasUnread(std::uint16_t port) {
    std::istringstream sockets(readFile("/proc/net/tcp"));
    std::string line;
    std::getline(sockets, line);  // the heading
    while (std::getline(sockets, line)) {
      std::istringstream fields(line);
      std::string number, local, remote, state, queues;
      fields >> number >> local >> remote >> state >> queues;
      const auto portOf = [](const std::string& address) {
        return std::stoul(address.substr(address.find(':') + 1), nullptr, 16);
      };
      // state 1: connected; queues: what is to be sent, and what is to be read
      if (state == "01" && portOf(local) == port && portOf(queues) > 0) return true;
    }
    return false;
  }
  bool linesCome(std::size_t count) const {
    return waitUntil([&] { return lines().size() >= count; });
  }
};

TEST_F(WatchCommand, TellsProgramsOfEachChange) {
  hold("order:before", "web:1");
  hold("other", "web:1");
  const Process watch = start({"watch", "order:", "--json", "--interval", "100ms"});
  ASSERT_TRUE(linesCome(1)) << readFile(folder / "errors");
  hold("order:k", "web:1");
  ASSERT_TRUE(linesCome(2));
  hold("order:k", "web:2", 'b');
  ASSERT_TRUE(linesCome(3));
  redis.command({"DEL", "order:k"});
  ASSERT_TRUE(linesCome(4));
  const std::vector<std::string> told = lines();
  ASSERT_EQ(told.size(), 4U);
  const std::array<std::array<std::string, 3>, 4> expected{{{"held", "order:before", "web:1"},
                                                            {"taken", "order:k", "web:1"},
                                                            {"passed", "order:k", "web:2"},
                                                            {"freed", "order:k", "web:2"}}};
  for (std::size_t i = 0; i < told.size(); ++i) {
    const Object::Ptr change = parsed(told[i]);
    EXPECT_EQ(change->getValue<std::string>("event"), expected.at(i)[0]) << told[i];
    EXPECT_EQ(change->getValue<std::string>("key"), expected.at(i)[1]);
    EXPECT_EQ(change->getValue<std::string>("owner"), expected.at(i)[2]);
    EXPECT_EQ(change->has("remainingMs"), expected.at(i)[0] != "freed");
    EXPECT_EQ(told[i].find("aaaa"), std::string::npos) << "the token is secret";
  }
}

TEST_F(WatchCommand, PrintsALineForEachChangeWhereThereIsNoTerminal) {
  const Process watch = start({"watch", "--interval", "100ms"});
  ASSERT_TRUE(isConnected());
  hold("k", "\x1b[31mred");
  ASSERT_TRUE(linesCome(1)) << readFile(folder / "errors");
  EXPECT_NE(lines().front().find("k  '\\x1b[31mred'  fence -"), std::string::npos) << lines().front();
}

TEST_F(WatchCommand, GoesOnWhenTheStoreIsBack) {
  hold("before", "web:1");
  const Process watch = start({"watch", "--json", "--interval", "100ms"});
  ASSERT_TRUE(linesCome(1)) << readFile(folder / "errors");
  redis.kill();
  ASSERT_TRUE(linesCome(2)) << readFile(folder / "errors");
  const Object::Ptr failure = parsed(lines()[1]);
  EXPECT_EQ(failure->getValue<std::string>("event"), "failed");
  EXPECT_NE(failure->getValue<std::string>("error").find("127.0.0.1"), std::string::npos);
  redis.restart();
  hold("k", "web:1");
  EXPECT_TRUE(waitUntil([&] { return lines().back().find("\"k\"") != std::string::npos; }));
  EXPECT_EQ(parsed(lines().back())->getValue<std::string>("event"), "taken");
}

TEST_F(WatchCommand, SaysWhatIsWrongBeforeItBegins) {
  const auto refuses = [&](const std::vector<std::string>& arguments, int code, const std::string& part) {
    const Finished finished = lockkeeper(arguments);
    EXPECT_EQ(finished.exitCode, code) << finished.errors;
    EXPECT_EQ(finished.output, "");
    EXPECT_NE(finished.errors.find(part), std::string::npos) << finished.errors;
  };
  refuses({"watch", "--interval", "99ms"}, 64, "--interval is 99ms: it must be 100ms to 1h");
  refuses({"watch", "--sort", "size"}, 64, "--sort is 'size': it must be waiting, key, owner, age");
  refuses({"watch", "a", "b"}, 64, "at most one PREFIX");
  redis.kill();
  refuses({"watch", "--json"}, 69, "127.0.0.1");
}

TEST_F(WatchCommand, StopsLikeAnyJobAndSoDoesServe) {
  const std::string shell = "set -m; \"$@\" & echo $! >" + file("child") + "; wait -f $!";
  for (const auto& words :
       {std::vector<std::string>{"serve", "--listen", "127.0.0.1:0"}, {"watch", "--json"}}) {
    SCOPED_TRACE(words.front());
    std::filesystem::remove(folder / "child");
    redis.command({"SET", "k", std::string(32, 'a') + "@web:1", "PX", "60000"});
    std::vector<std::string> line{"bash", "-c", shell, "bash"};
    for (const std::string& word : commandLine(words)) line.push_back(word);
    ProcessOptions withOutput = options();
    withOutput.standardOutput = folder / words.front();
    Process job(line, withOutput);
    ASSERT_TRUE(waitUntil([&] {
      return readFile(folder / words.front()).ends_with("\n") && readFile(folder / "child").ends_with("\n");
    }));
    const pid_t command = std::stoi(readFile(folder / "child"));
    ::kill(command, SIGTSTP);
    EXPECT_TRUE(waitUntil([&] { return stateOf(command) == "T"; }));
    ::kill(command, SIGCONT);
    ::kill(command, SIGTERM);
    EXPECT_TRUE(job.waitFor(std::chrono::seconds{20}));
  }
}

TEST_F(WatchCommand, EndsBySignalAndWhenNobodyReads) {
  Process watch = start({"watch", "--json", "--interval", "100ms"});
  ASSERT_TRUE(isConnected());
  watch.signal(SIGTERM);
  EXPECT_EQ(watch.waitFor(std::chrono::seconds{20}), 128 + SIGTERM);
  hold("k", "web:1");
  const std::string piped = LOCKKEEPER_COMMAND " watch --json --interval 100ms | head -n 1";
  Process pipe({"bash", "-c", piped}, options());
  EXPECT_TRUE(pipe.waitFor(std::chrono::seconds{20})) << "although nothing changes";
}

TEST_F(WatchCommand, EndsBySignalAlthoughTheStoreHangs) {
  const std::string patient = redis.uri() + "?connectTimeout=1m&ioTimeout=1m";
  Process watch = start({"watch", "--json", "--interval", "100ms", "--store", patient});
  ASSERT_TRUE(isConnected());
  redis.pause();
  ASSERT_TRUE(waitUntil([&] { return hasUnread(redis.port()); })) << "it looks";
  watch.signal(SIGTERM);
  EXPECT_EQ(watch.waitFor(std::chrono::seconds{20}), 128 + SIGTERM);

  Process first = start({"watch", "--json", "--store", patient});
  ASSERT_TRUE(waitUntil([&] { return stateOf(first.pid()) == "S" && hasUnread(redis.port()); }))
      << stateOf(first.pid()) << readFile(folder / "errors");
  first.signal(SIGINT);
  EXPECT_EQ(first.waitFor(std::chrono::seconds{20}), 128 + SIGINT);
}

/// On a terminal of 100 columns, whose screen the test reads.
class LiveWatch : public WatchCommand {
 protected:
  LiveWatch() : outside_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    if (outside_ < 0 || ::grantpt(outside_) != 0 || ::unlockpt(outside_) != 0) {
      throw std::runtime_error("this machine has no pseudo terminals");
    }
    inside_ = ::open(::ptsname(outside_), O_RDWR | O_NOCTTY | O_CLOEXEC);
    const winsize size{.ws_row = 10, .ws_col = 100, .ws_xpixel = 0, .ws_ypixel = 0};
    ::ioctl(inside_, TIOCSWINSZ, &size);
  }
  ~LiveWatch() override {
    ::close(inside_);
    ::close(outside_);
  }

  Process watch(std::vector<std::string> arguments) const {
    ProcessOptions onTerminal = options();
    onTerminal.standardInput = ::ptsname(outside_);
    onTerminal.standardOutput = ::ptsname(outside_);
    onTerminal.standardError = folder / "errors";
    arguments.insert(arguments.begin(), {"watch", "--interval", "100ms"});
    return Process(commandLine(arguments), onTerminal);
  }
  void type(const std::string& text) const {
    ASSERT_EQ(::write(outside_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  /// Whether the screen, drawn anew, shows a text, and not another one.
  bool shows(const std::string& text, const std::string& not_ = "") {
    return waitUntil([&] {
      const std::string screen = lastScreen();
      return screen.find(text) != std::string::npos &&
             (not_.empty() || screen.find(not_) == std::string::npos);
    });
  }
  std::string lastScreen() {
    read();
    const std::size_t last = seen_.rfind("\x1b[H");
    if (last == std::string::npos) return "";
    // The last one may be half read.
    if (seen_.find("\x1b[J", last) != std::string::npos) return seen_.substr(last);
    const std::size_t before = last == 0 ? std::string::npos : seen_.rfind("\x1b[H", last - 1);
    return before == std::string::npos ? "" : seen_.substr(before, last - before);
  }
  void read() {
    std::array<char, 4096> bytes{};
    pollfd ready{outside_, POLLIN, 0};
    while (::poll(&ready, 1, 0) > 0 && (ready.revents & POLLIN) != 0) {
      const ssize_t count = ::read(outside_, bytes.data(), bytes.size());
      if (count <= 0) return;
      seen_.append(bytes.data(), static_cast<std::size_t>(count));
    }
  }
  tcflag_t modes() const {
    termios now{};
    ::tcgetattr(inside_, &now);
    return now.c_lflag;
  }

  std::string seen_;

 private:
  int outside_;
  int inside_ = -1;
};

TEST_F(LiveWatch, ShowsWhoHoldsWhatUntilQIsPressed) {
  const tcflag_t before = modes();
  hold("order:1", "web:1");
  hold("order:2", "\x1b[31mred");
  Process process = watch({});
  ASSERT_TRUE(shows("order:1  web:1")) << readFile(folder / "errors");
  EXPECT_NE(modes(), before);
  EXPECT_TRUE(shows("'\\x1b[31mred'")) << "it controls nothing";
  EXPECT_TRUE(shows("2 of 2 keys, by waiting"));
  hold("order:3", "web:3");
  EXPECT_TRUE(shows("3 of 3 keys"));
  redis.command({"DEL", "order:1"});
  EXPECT_TRUE(shows("2 of 2 keys", "order:1"));
  type("q");
  EXPECT_EQ(process.waitFor(std::chrono::seconds{20}), 0);
  read();
  EXPECT_TRUE(seen_.ends_with("\x1b[?25h\x1b[?1049l")) << "what was there before is back";
  EXPECT_EQ(modes(), before);
}

TEST_F(LiveWatch, PutsFirstWhatIsWaitedForAndSaysByWhom) {
  hold("a", "web:1");
  hold("b", "web:2");
  const Process waiter = start({"run", "--wait", "1h", "b", "--", "true"});
  Process process = watch({});
  ASSERT_TRUE(shows("2 of 2 keys, by waiting")) << readFile(folder / "errors");
  EXPECT_TRUE(waitUntil([&] {
    const std::string screen = lastScreen();
    return screen.find("\nb ") < screen.find("\na ");
  })) << lastScreen();
  EXPECT_TRUE(shows(":" + std::to_string(waiter.pid()) + " for ")) << lastScreen();
  type("q");
  EXPECT_EQ(process.waitFor(std::chrono::seconds{20}), 0);
}

TEST_F(LiveWatch, ShowsWhichLeasesRanOut) {
  hold("released", "web:1");
  redis.command({"SET", "stuck", std::string(32, 'a') + "@web:2", "PX", "5000"});
  Process process = watch({});
  ASSERT_TRUE(shows("2 of 2 keys")) << readFile(folder / "errors");
  redis.command({"DEL", "released"});
  ASSERT_TRUE(shows("0 of 0 keys, by waiting, 1 lost in the last 10 min", "released")) << lastScreen();
  EXPECT_NE(lastScreen().find("LOST   OWNER  WHEN"), std::string::npos) << lastScreen();
  EXPECT_NE(lastScreen().find("not renewed: its lease ran out after "), std::string::npos) << lastScreen();
  type("q");
  EXPECT_EQ(process.waitFor(std::chrono::seconds{20}), 0);
}

TEST_F(LiveWatch, SortsByTurnsAndFilters) {
  hold("a", "web:1");
  hold("b", "web:1");
  Process process = watch({"--sort", "turns"});
  ASSERT_TRUE(shows("by turns"));
  hold("b", "web:2");
  ASSERT_TRUE(waitUntil([&] {
    const std::string screen = lastScreen();
    return screen.find("\nb    web:2") != std::string::npos &&
           screen.find("\nb    web:2") < screen.find("\na    web:1");
  })) << "it had two turns: "
      << lastScreen();
  type("/web:1\r");
  EXPECT_TRUE(shows("1 of 2 keys, by turns, with 'web:1'", "web:2")) << lastScreen();
  type("/\x1b");
  EXPECT_TRUE(shows("2 of 2 keys"));
  type("s");
  EXPECT_TRUE(shows("by waiting"));
  type("s");
  EXPECT_TRUE(shows("by key"));
  redis.kill();
  EXPECT_TRUE(shows("not up to date: ")) << "and what was seen last stays";
  EXPECT_TRUE(shows("a    web:1"));
  type("q");
  EXPECT_EQ(process.waitFor(std::chrono::seconds{20}), 0);
}

}  // namespace
}  // namespace lockkeeper::test
