#include <Poco/DateTimeFormat.h>
#include <Poco/DateTimeFormatter.h>
#include <Poco/JSON/Object.h>
#include <Poco/Timestamp.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "command_settings.h"
#include "commands.h"
#include "exit_codes.h"
#include "inspect/held_keys.h"
#include "inspect/json.h"
#include "inspect/live_table.h"
#include "inspect/watched.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "run/background.h"
#include "run/end_soon.h"
#include "run/signal_queue.h"
#include "shown.h"

namespace lockkeeper::cli {
namespace {

using std::chrono::milliseconds;
using Kind = LockObserver::Kind;

std::string_view toString(Kind kind) {
  switch (kind) {
    case Kind::held:
      return "held";
    case Kind::taken:
      return "taken";
    case Kind::passed:
      return "passed";
    case Kind::freed:
      return "freed";
  }
  return "";
}

constexpr milliseconds usualInterval{1000};
constexpr milliseconds shortestInterval{100};
constexpr milliseconds longestInterval{3'600'000};

milliseconds intervalOf(const CommandLine& line) {
  const milliseconds interval = durationOption(line, "interval", usualInterval);
  checkDuration<UsageError>("--interval", interval, shortestInterval, longestInterval);
  return interval;
}

std::string clockTime(const std::string& format) {
  return Poco::DateTimeFormatter::format(Poco::Timestamp(), format);
}

/// One object a line, for programs.
class JsonLines final : public Display {
 public:
  void changed(const Seen& seen) override {
    for (const auto& [kind, key, expired] : seen.changes) {
      Poco::JSON::Object object = jsonOf(key.name, key.grant.holder);
      if (kind == Kind::freed) object.remove("remainingMs");
      if (kind != Kind::freed && key.waiting) object.set("waiting", *key.waiting);
      if (expired) object.set("expired", true);
      print(object, std::string(toString(kind)));
    }
  }
  void failed(const std::string& why) override {
    Poco::JSON::Object object = newObject();
    object.set("error", why);
    print(object, "failed");
  }

 private:
  static void print(Poco::JSON::Object& object, const std::string& event) {
    object.set("event", event);
    object.set("at", clockTime(Poco::DateTimeFormat::ISO8601_FRAC_FORMAT));
    printLine(object);
  }
};

/// One line for each change, where there is no terminal.
class TextLines final : public Display {
 public:
  void changed(const Seen& seen) override {
    for (const auto& [kind, key, expired] : seen.changes) {
      const Holder& holder = key.grant.holder;
      std::cout << clockTime(Poco::DateTimeFormat::ISO8601_FORMAT) << "  " << toString(kind) << "  "
                << shown(key.name) << "  " << shownOwner(holder) << "  fence " << shownFence(holder)
                << (holder.share ? "  " + shownShare(holder.share) : "")
                << (expired ? kind == Kind::freed ? "  its lease ran out" : "  the former lease ran out" : "")
                << std::endl;
    }
  }
  void failed(const std::string& why) override {
    std::cout << clockTime(Poco::DateTimeFormat::ISO8601_FORMAT) << "  failed  " << why << std::endl;
  }
};

/// Hears signals and keys until `end`, or until something is readable. Returns the exit code when it is time
/// to stop: also when nobody reads the output any more, whether there is more of it or not.
std::optional<int> hear(SignalQueue& signals, LiveTable* table, Instant end, int readable = -1) {
  constexpr milliseconds longestWait{60'000};
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(end - systemClock()->now());
    if (left.count() <= 0) return std::nullopt;
    std::array<pollfd, 4> ready{pollfd{signals.descriptor(), POLLIN, 0},
                                pollfd{table != nullptr ? STDIN_FILENO : -1, POLLIN, 0},
                                pollfd{readable, POLLIN, 0}, pollfd{STDOUT_FILENO, 0, 0}};
    ::poll(ready.data(), ready.size(), static_cast<int>(std::min(left, longestWait).count()));
    if ((ready[3].revents & (POLLHUP | POLLERR)) != 0) return exitOk;
    if (ready[2].revents != 0) return std::nullopt;
    const auto typed = ready[1].revents;
    if ((typed & (POLLHUP | POLLERR)) != 0) return exitOk;  // the terminal is gone
    if (typed != 0 && !table->handleKeys()) return exitOk;
    while (const auto signal = signals.next()) {
      if (*signal == SIGTSTP) {
        table != nullptr ? table->stop() : static_cast<void>(stopBy(SIGTSTP));
      } else if (*signal == SIGWINCH && table != nullptr) {
        table->draw();
      } else if (asksToEnd(*signal)) {
        return exitSignal + *signal;
      }
    }
  }
}

}  // namespace

int watchKeys(const CommandLine& line) {
  const auto operands = line.operandsOf(0, 1, "at most one PREFIX");
  const milliseconds interval = intervalOf(line);
  const std::size_t order = orderNamed(line.option("sort"));
  const bool onTerminal = !line.has("json") && ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
  SignalQueue signals;
  const HeldKeys store(readSettings(line), operands.empty() ? "" : operands.front());
  Watched watched(store);
  std::unique_ptr<Display> display;
  LiveTable* table = nullptr;
  const auto lookAgain = [&]() -> std::optional<int> {
    Background<LockListing> look([&] { return store.look(); });
    const auto end = hear(signals, table, Instant::max(), look.descriptor());
    if (end) {
      display.reset();  // the terminal is the shell's again
      endSoon(*end);
    } else {
      watched.compare(look.get());
    }
    return end;
  };
  // A store that is not there now is told before the terminal is taken.
  if (const auto end = lookAgain()) return *end;
  if (line.has("json")) {
    display = std::make_unique<JsonLines>();
  } else if (onTerminal) {
    auto live = std::make_unique<LiveTable>(order, line.option("filter").value_or(""));
    table = live.get();
    display = std::move(live);
  } else {
    display = std::make_unique<TextLines>();
  }
  display->changed(watched.seen());
  while (std::cout) {
    if (const auto end = hear(signals, table, systemClock()->now() + interval)) return *end;
    try {
      if (const auto end = lookAgain()) return *end;
      display->changed(watched.seen());
    } catch (const Error& error) {
      display->failed(oneLine(error.what()));
    }
  }
  return exitOk;  // nobody reads it any more
}

}  // namespace lockkeeper::cli
