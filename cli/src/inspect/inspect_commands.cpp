#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <vector>

#include "commands.h"
#include "exit_codes.h"
#include "inspect/table.h"
#include "lockkeeper/driver/capabilities.h"
#include "lockkeeper/driver/key.h"
#include "lockkeeper/driver/quorum.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "shown.h"

namespace lockkeeper::cli {
namespace {

constexpr std::chrono::seconds lookBound{5};
constexpr std::chrono::minutes listBound{1};

using Row = std::vector<std::string>;

Instant within(std::chrono::nanoseconds bound) { return saturatingAdd(systemClock()->now(), bound); }

std::string shownRemaining(const Holder& holder) {
  return holder.remaining ? formatDuration(*holder.remaining) : "for ever";
}

std::string shownOwner(const Holder& holder) {
  return holder.owner.empty() ? "an unknown client" : shown(holder.owner);
}

Row row(std::string_view key, const Holder& holder) {
  return {shown(key), holder.owner.empty() ? "-" : shown(holder.owner), shownRemaining(holder),
          holder.fence ? std::to_string(*holder.fence) : "-"};
}

Row row(const Quorate::View& view) {
  if (!view.fault.empty()) {
    // Messages name the node; here the first column does.
    const bool named = view.fault.starts_with(view.node);
    const auto text = view.fault.find_first_not_of(": ", named ? view.node.size() : 0);
    return {view.node, "-", oneLine(text == std::string::npos ? view.fault : view.fault.substr(text))};
  }
  if (!view.holder) return {view.node, "-", "free"};
  return {view.node, shownRemaining(*view.holder), "held by " + shownOwner(*view.holder)};
}

void printLocks(std::vector<Row> rows) {
  rows.insert(rows.begin(), {"KEY", "OWNER", "REMAINING", "FENCE"});
  printTable(rows);
}

void printNodes(const std::vector<Quorate::View>& views) {
  std::vector<Row> rows{{"NODE", "REMAINING", "SAYS"}};
  for (const Quorate::View& view : views) rows.push_back(row(view));
  printTable(rows);
}

template <class Capability>
Capability& capability(LockDriver& driver, const char* what) {
  auto* able = capability<Capability>(driver);
  if (able == nullptr) throw ConfigError(std::string("this store cannot ") + what);
  return *able;
}

bool confirmed(const std::string& key, const Holder& holder) {
  std::cerr << shown(key) << " is held by " << shownOwner(holder) << ". Take it away? [y/N] ";
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

}  // namespace

int showKey(const CommandLine& line) {
  const std::string key = line.operandsOf(1, 1, "one KEY").front();
  const Settings settings = readSettings(line);
  const std::string full = settings.fullKey(key);
  checkNamespace(settings.manager.keyNamespace);
  checkKey(key);
  const auto driver = openStore(settings);
  const auto holder = driver->holder(full, within(lookBound));
  if (holder) {
    printLocks({row(key, *holder)});
  } else {
    std::cout << shown(key) << " is free\n";
  }
  if (auto* quorate = capability<Quorate>(*driver)) {
    std::cout << "\n";
    printNodes(quorate->views(full, within(lookBound)));
  }
  return exitOk;
}

int listKeys(const CommandLine& line) {
  const auto operands = line.operandsOf(0, 1, "at most one PREFIX");
  const Settings settings = readSettings(line);
  checkNamespace(settings.manager.keyNamespace);
  const auto driver = openStore(settings);
  const std::size_t hidden = settings.fullKey("").size();
  std::vector<Row> rows;
  const auto collect = [&](std::string_view key, const Holder& holder) {
    rows.push_back(row(key.substr(hidden), holder));
    return true;
  };
  capability<Browsable>(*driver, "list its locks")
      .list(settings.fullKey(operands.empty() ? "" : operands.front()), collect, within(listBound));
  std::sort(rows.begin(), rows.end());
  printLocks(std::move(rows));
  return exitOk;
}

int breakKey(const CommandLine& line) {
  const std::string key = line.operandsOf(1, 1, "one KEY").front();
  const bool ask = !line.has("yes");
  if (ask && ::isatty(STDIN_FILENO) == 0)
    throw UsageError("there is no terminal to ask on: break needs --yes");
  const Settings settings = readSettings(line);
  const std::string full = settings.fullKey(key);
  checkNamespace(settings.manager.keyNamespace);
  checkKey(key);
  const auto driver = openStore(settings);
  auto& breakable = capability<Breakable>(*driver, "break locks");
  const auto holder = driver->holder(full, within(lookBound));
  if (holder && ask && !confirmed(key, *holder)) {
    std::cout << shown(key) << " was left as it is\n";
    return exitBusy;
  }
  if (holder && breakable.breakLock(full, within(lookBound), &*holder)) {
    std::cout << shown(key) << " was taken from its holder\n";
    return exitOk;
  }
  const auto other = holder ? driver->holder(full, within(lookBound)) : std::nullopt;
  if (!other) {
    std::cout << shown(key) << " was free\n";
    return exitOk;
  }
  std::cerr << "lockkeeper: " << shown(key) << " is now held by " << shownOwner(*other)
            << ": it was left as it is\n";
  return exitBusy;
}

}  // namespace lockkeeper::cli
