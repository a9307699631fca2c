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
#include "inspect/screen.h"
#include "inspect/table.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/lock_observer.h"
#include "run/background.h"
#include "run/end_soon.h"
#include "run/signal_queue.h"
#include "shown.h"

namespace lockkeeper::cli {
namespace {

using std::chrono::milliseconds;
using Kind = LockObserver::Kind;

/// A row: a grant, and what is shown besides.
struct Key {
  std::string name;  // without the namespace
  SeenGrant grant;
  std::optional<std::size_t> waiting{};
};
struct Change {
  Kind kind;
  Key key;
};
/// What a look has found.
struct Seen {
  std::vector<Change> changes;
  std::vector<Key> held;
};

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

/// An order of the rows, and its name.
struct Order {
  const char* name;
  bool (*before)(const Key& one, const Key& other);
};

// Those without one come last.
milliseconds remaining(const Key& key) { return key.grant.holder.remaining.value_or(milliseconds::max()); }

constexpr std::array orders{
    Order{"key", [](const Key& one, const Key& other) { return one.name < other.name; }},
    Order{"owner",
          [](const Key& one, const Key& other) { return one.grant.holder.owner < other.grant.holder.owner; }},
    Order{"age", [](const Key& one, const Key& other) { return one.grant.since < other.grant.since; }},
    Order{"remaining", [](const Key& one, const Key& other) { return remaining(one) < remaining(other); }},
    Order{"turns", [](const Key& one, const Key& other) { return one.grant.turns > other.grant.turns; }},
    Order{"waiting", [](const Key& one, const Key& other) { return one.waiting > other.waiting; }}};

std::size_t orderOf(const CommandLine& line) {
  const std::string name = line.option("sort").value_or(orders.front().name);
  const auto found = std::ranges::find(orders, name, &Order::name);
  if (found == orders.end()) {
    throw UsageError("--sort is " + quoted(name) +
                     ": it must be key, owner, age, remaining, turns or waiting");
  }
  return static_cast<std::size_t>(found - orders.begin());
}

milliseconds intervalOf(const CommandLine& line) {
  const milliseconds interval = durationOption(line, "interval", usualInterval);
  checkDuration<UsageError>("--interval", interval, shortestInterval, longestInterval);
  return interval;
}

std::string clockTime(const std::string& format) {
  return Poco::DateTimeFormatter::format(Poco::Timestamp(), format);
}

/// Where the watch is told of what it has seen.
class Display {
 public:
  virtual ~Display() = default;

  virtual void changed(const Seen& seen) = 0;
  virtual void failed(const std::string& why) = 0;
};

/// One object a line, for programs.
class JsonLines final : public Display {
 public:
  void changed(const Seen& seen) override {
    for (const auto& [kind, key] : seen.changes) {
      Poco::JSON::Object object = jsonOf(key.name, key.grant.holder);
      if (kind == Kind::freed) object.remove("remainingMs");
      if (kind != Kind::freed && key.waiting) object.set("waiting", *key.waiting);
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
    for (const auto& [kind, key] : seen.changes) {
      const Holder& holder = key.grant.holder;
      std::cout << clockTime(Poco::DateTimeFormat::ISO8601_FORMAT) << "  " << toString(kind) << "  "
                << shown(key.name) << "  " << shownOwner(holder) << "  fence " << shownFence(holder)
                << (holder.share ? "  " + shownShare(holder.share) : "") << std::endl;
    }
  }
  void failed(const std::string& why) override {
    std::cout << clockTime(Poco::DateTimeFormat::ISO8601_FORMAT) << "  failed  " << why << std::endl;
  }
};

/// A table that fills the terminal, and the keys that change it.
class LiveTable final : public Display {
 public:
  LiveTable(std::size_t order, std::string filter) : order_(order), filter_(std::move(filter)) {}

  void changed(const Seen& seen) override {
    held_ = seen.held;
    fault_.clear();
    draw();
  }
  void failed(const std::string& why) override {
    fault_ = why;
    draw();
  }

  /// What was pressed since. False: quit.
  bool handleKeys() {
    for (const char key : Screen::pressed()) {
      if (typing_) {
        type(key);
      } else if (key == 'q') {
        return false;
      } else if (key == 's') {
        order_ = (order_ + 1) % orders.size();
      } else if (key == '/') {
        typing_ = true;
        filter_.clear();
      }
    }
    draw();
    return true;
  }

  /// For as long as this process is stopped, the terminal is its shell's.
  void stop() {
    screen_.reset();
    stopBy(SIGTSTP);
    screen_.emplace();
    draw();
  }

  void draw() const {
    const Instant now = systemClock()->now();
    std::vector<std::vector<std::string>> rows{
        {"KEY", "OWNER", "AGE", "REMAINING", "FENCE", "TURNS", "WAITING", "SHARE"}};
    std::vector<Key> shownKeys;
    std::ranges::copy_if(held_, std::back_inserter(shownKeys), [&](const Key& key) {
      return shown(key.name).find(filter_) != std::string::npos ||
             shown(key.grant.holder.owner).find(filter_) != std::string::npos;
    });
    std::ranges::stable_sort(shownKeys, orders[order_].before);
    for (const Key& key : shownKeys) {
      const auto& [id, full, holder, since, sinceBefore, turns] = key.grant;
      const auto age = std::chrono::duration_cast<milliseconds>(now - since);
      rows.push_back({shown(key.name), shownOwner(holder), (sinceBefore ? ">" : "") + shownLength(age),
                      shownRemaining(holder), shownFence(holder), std::to_string(turns),
                      shownWaiting(key.waiting), shownShare(holder.share)});
    }
    hideUsual(rows);
    screen_->show(tableLines(rows), status(shownKeys.size()));
  }

 private:
  static constexpr char escape = '\x1b';
  static constexpr char erase = '\x7f';

  void type(char key) {
    if (key == '\r' || key == '\n' || key == escape) {
      typing_ = false;
      if (key == escape) filter_.clear();
    } else if (key == erase || key == '\b') {
      if (!filter_.empty()) filter_.pop_back();
    } else if (static_cast<unsigned char>(key) >= ' ') {
      filter_ += key;
    }
  }

  std::string status(std::size_t count) const {
    if (!fault_.empty()) return "not up to date: " + fault_;
    if (typing_) return "filter: " + shown(filter_) + "_   Enter: done, Esc: all keys";
    std::string text =
        std::to_string(count) + " of " + std::to_string(held_.size()) + " keys, by " + orders[order_].name;
    if (!filter_.empty()) text += ", with " + quoted(filter_);
    return text + "   q: quit, s: sort, /: filter";
  }

  std::optional<Screen> screen_{std::in_place};
  std::size_t order_;
  std::string filter_;
  bool typing_ = false;
  std::vector<Key> held_;
  std::string fault_;
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

/// Looks again and again, each time for what has changed.
class Watch {
 public:
  explicit Watch(const HeldKeys& keys) : keys_(keys) {}

  void compare(LockListing listing) {
    const auto keyOf = [&](const SeenGrant& grant) {
      return Key{keys_.nameOf(grant.key), grant, listing.waiting(grant.key)};
    };
    seen_ = {};
    const bool first = std::exchange(first_, false);
    for (const auto& change : observer_.compare(std::move(listing.holders), systemClock()->now(), first)) {
      seen_.changes.push_back({change.kind, keyOf(change.grant)});
    }
    for (const auto& [name, grant] : observer_.held()) seen_.held.push_back(keyOf(grant));
  }
  const Seen& seen() const { return seen_; }

 private:
  const HeldKeys& keys_;
  LockObserver observer_;
  bool first_ = true;
  Seen seen_;
};

}  // namespace

int watchKeys(const CommandLine& line) {
  const auto operands = line.operandsOf(0, 1, "at most one PREFIX");
  const milliseconds interval = intervalOf(line);
  const std::size_t order = orderOf(line);
  const bool onTerminal = !line.has("json") && ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
  SignalQueue signals;
  const HeldKeys store(readSettings(line), operands.empty() ? "" : operands.front());
  Watch watch(store);
  std::unique_ptr<Display> display;
  LiveTable* table = nullptr;
  const auto lookAgain = [&]() -> std::optional<int> {
    Background<LockListing> look([&] { return store.look(); });
    const auto end = hear(signals, table, Instant::max(), look.descriptor());
    if (end) {
      display.reset();  // the terminal is the shell's again
      endSoon(*end);
    } else {
      watch.compare(look.get());
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
  display->changed(watch.seen());
  while (std::cout) {
    if (const auto end = hear(signals, table, systemClock()->now() + interval)) return *end;
    try {
      if (const auto end = lookAgain()) return *end;
      display->changed(watch.seen());
    } catch (const Error& error) {
      display->failed(oneLine(error.what()));
    }
  }
  return exitOk;  // nobody reads it any more
}

}  // namespace lockkeeper::cli
