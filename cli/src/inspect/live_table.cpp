#include "inspect/live_table.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "command_line.h"
#include "inspect/held_keys.h"
#include "inspect/table.h"
#include "lockkeeper/error.h"
#include "run/signal_queue.h"
#include "shown.h"

namespace lockkeeper::cli {
namespace {

using std::chrono::milliseconds;

constexpr char escape = '\x1b';
constexpr char erase = '\x7f';
constexpr std::size_t mostLossLines = 5;

/// An order of the rows, and its name.
struct Order {
  const char* name;
  bool (*before)(const WatchedKey& one, const WatchedKey& other);
};

// Those without one come last.
milliseconds remaining(const WatchedKey& key) {
  return key.grant.holder.remaining.value_or(milliseconds::max());
}

bool isOlder(const WatchedKey& one, const WatchedKey& other) { return one.grant.since < other.grant.since; }

bool isWaitedForLonger(const WatchedKey& one, const WatchedKey& other) {
  const Instant first = one.waitsSince.value_or(Instant::max());
  const Instant second = other.waitsSince.value_or(Instant::max());
  return first != second ? first < second : isOlder(one, other);
}

constexpr std::array orders{
    Order{"waiting", isWaitedForLonger},
    Order{"key", [](const WatchedKey& one, const WatchedKey& other) { return one.name < other.name; }},
    Order{"owner", [](const WatchedKey& one,
                      const WatchedKey& other) { return one.grant.holder.owner < other.grant.holder.owner; }},
    Order{"age", isOlder},
    Order{"remaining",
          [](const WatchedKey& one, const WatchedKey& other) { return remaining(one) < remaining(other); }},
    Order{"turns", [](const WatchedKey& one, const WatchedKey& other) {
            return one.grant.turns > other.grant.turns;
          }}};

std::string shownQueue(const WatchedKey& key, Instant now) {
  std::string text = shownWaiting(key.waiting);
  if (!key.waitsSince) return text;
  text += ": " + (key.firstWaiter.empty() ? "-" : shown(key.firstWaiter)) + " for ";
  return text + shownLength(std::chrono::duration_cast<milliseconds>(now - *key.waitsSince));
}

std::vector<std::string> row(const WatchedKey& key, Instant now) {
  const SeenGrant& grant = key.grant;
  const auto age = std::chrono::duration_cast<milliseconds>(now - grant.since);
  return {shown(key.name),
          shownOwner(grant.holder),
          (grant.sinceBefore ? ">" : "") + shownLength(age),
          shownQueue(key, now),
          shownRemaining(grant.holder),
          shownFence(grant.holder),
          std::to_string(grant.turns),
          shownShare(grant.holder.share)};
}

}  // namespace

std::size_t orderNamed(const std::optional<std::string>& name) {
  if (!name) return 0;
  const auto found = std::ranges::find(orders, *name, &Order::name);
  if (found == orders.end()) {
    throw UsageError("--sort is " + quoted(*name) +
                     ": it must be waiting, key, owner, age, remaining or turns");
  }
  return static_cast<std::size_t>(found - orders.begin());
}

void LiveTable::changed(const Seen& seen) {
  seen_ = seen;
  fault_.clear();
  draw();
}

void LiveTable::failed(const std::string& why) {
  fault_ = why;
  draw();
}

bool LiveTable::handleKeys() {
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

void LiveTable::stop() {
  screen_.reset();
  stopBy(SIGTSTP);
  screen_.emplace();
  draw();
}

void LiveTable::draw() const {
  const Instant now = systemClock()->now();
  std::vector<std::vector<std::string>> rows{
      {"KEY", "OWNER", "HELD FOR", "WAITING", "REMAINING", "FENCE", "TURNS", "SHARE"}};
  std::vector<WatchedKey> chosen;
  std::ranges::copy_if(seen_.held, std::back_inserter(chosen), [&](const WatchedKey& key) {
    return shown(key.name).find(filter_) != std::string::npos ||
           shown(key.grant.holder.owner).find(filter_) != std::string::npos;
  });
  std::ranges::stable_sort(chosen, orders[order_].before);
  for (const WatchedKey& key : chosen) rows.push_back(row(key, now));
  hideUsual(rows);
  screen_->show(tableLines(rows), lossLines(), status(chosen.size()));
}

std::vector<std::string> LiveTable::lossLines() const {
  if (seen_.losses.empty()) return {};
  const Instant now = systemClock()->now();
  std::vector<std::vector<std::string>> rows{{"LOST", "OWNER", "WHEN", "HOW"}};
  for (const Seen::Loss& each : seen_.losses) {
    if (rows.size() > mostLossLines) break;
    const auto ago = std::chrono::duration_cast<std::chrono::seconds>(now - each.at);
    rows.push_back({shown(each.key), shownOwner(each.holder), shownLength(ago) + " ago",
                    "not renewed: its lease ran out after " + shownLength(each.held)});
  }
  std::vector<std::string> lines = tableLines(rows);
  lines.insert(lines.begin(), "");
  return lines;
}

void LiveTable::type(char key) {
  if (key == '\r' || key == '\n' || key == escape) {
    typing_ = false;
    if (key == escape) filter_.clear();
  } else if (key == erase || key == '\b') {
    if (!filter_.empty()) filter_.pop_back();
  } else if (static_cast<unsigned char>(key) >= ' ') {
    filter_ += key;
  }
}

std::string LiveTable::status(std::size_t count) const {
  if (!fault_.empty()) return "not up to date: " + fault_;
  if (typing_) return "filter: " + shown(filter_) + "_   Enter: done, Esc: all keys";
  std::string text =
      std::to_string(count) + " of " + std::to_string(seen_.held.size()) + " keys, by " + orders[order_].name;
  if (!filter_.empty()) text += ", with " + quoted(filter_);
  if (!seen_.losses.empty()) text += ", " + std::to_string(seen_.losses.size()) + " lost in the last 10 min";
  return text + "   q: quit, s: sort, /: filter";
}

}  // namespace lockkeeper::cli
