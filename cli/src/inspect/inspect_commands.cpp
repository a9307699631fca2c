#include <Poco/JSON/Array.h>
#include <Poco/JSON/Object.h>
#include <unistd.h>

#include <iostream>
#include <vector>

#include "commands.h"
#include "exit_codes.h"
#include "inspect/held_keys.h"
#include "inspect/json.h"
#include "inspect/table.h"
#include "lockkeeper/driver/capabilities.h"
#include "lockkeeper/driver/key.h"
#include "lockkeeper/driver/quorum.h"
#include "lockkeeper/error.h"
#include "shown.h"

namespace lockkeeper::cli {
namespace {

constexpr std::chrono::seconds lookBound{5};

using Row = std::vector<std::string>;

Instant within(std::chrono::nanoseconds bound) { return saturatingAdd(systemClock()->now(), bound); }

std::string nameOf(const Holder& holder) {
  return holder.owner.empty() ? "an unknown client" : shown(holder.owner);
}

Row row(std::string_view key, const Holder& holder) {
  return {shown(key), shownOwner(holder), shownRemaining(holder), shownFence(holder)};
}

Row row(const Quorate::View& view) {
  if (!view.fault.empty()) {
    // Messages name the node; here the first column does.
    const bool named = view.fault.starts_with(view.node);
    const auto text = view.fault.find_first_not_of(": ", named ? view.node.size() : 0);
    return {view.node, "-", oneLine(text == std::string::npos ? view.fault : view.fault.substr(text))};
  }
  if (!view.holder) return {view.node, "-", "free"};
  return {view.node, shownRemaining(*view.holder), "held by " + nameOf(*view.holder)};
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

Poco::JSON::Object answerOf(std::string_view key, const std::optional<Holder>& holder) {
  if (holder) {
    Poco::JSON::Object object = jsonOf(key, *holder);
    object.set("held", true);
    return object;
  }
  Poco::JSON::Object object = newObject();
  setText(object, "key", key);
  object.set("held", false);
  return object;
}

Poco::JSON::Array nodesOf(const std::vector<Quorate::View>& views) {
  Poco::JSON::Array nodes;
  for (const Quorate::View& view : views) {
    Poco::JSON::Object node = view.holder ? jsonOf(view.node, *view.holder) : newObject();
    node.remove("key");
    node.set("node", view.node);
    node.set("held", view.holder.has_value());
    if (!view.fault.empty()) node.set("fault", oneLine(view.fault));
    nodes.add(node);
  }
  return nodes;
}

template <class Capability>
Capability& capability(LockDriver& driver, const char* what) {
  auto* able = capability<Capability>(driver);
  if (able == nullptr) throw ConfigError(std::string("this store cannot ") + what);
  return *able;
}

bool confirmed(const std::string& key, const Holder& holder) {
  std::cerr << shown(key) << " is held by " << nameOf(holder) << ". Take it away? [y/N] ";
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
  auto* const quorate = capability<Quorate>(*driver);
  if (line.has("json")) {
    Poco::JSON::Object object = answerOf(key, holder);
    if (quorate != nullptr) object.set("nodes", nodesOf(quorate->views(full, within(lookBound))));
    printLine(object);
    return exitOk;
  }
  if (holder) {
    printLocks({row(key, *holder)});
  } else {
    std::cout << shown(key) << " is free\n";
  }
  if (quorate != nullptr) {
    std::cout << "\n";
    printNodes(quorate->views(full, within(lookBound)));
  }
  return exitOk;
}

int listKeys(const CommandLine& line) {
  const auto operands = line.operandsOf(0, 1, "at most one PREFIX");
  const HeldKeys keys(readSettings(line), operands.empty() ? "" : operands.front());
  const WatchedKeys::Locks held = keys.look();
  if (line.has("json")) {
    for (const auto& [key, holder] : held) printLine(jsonOf(key, holder));
    return exitOk;
  }
  std::vector<Row> rows;
  for (const auto& [key, holder] : held) rows.push_back(row(key, holder));
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
  const auto tell = [&](const char* outcome, const std::string& text) {
    if (line.has("json")) {
      Poco::JSON::Object object = newObject();
      setText(object, "key", key);
      object.set("outcome", outcome);
      printLine(object);
    } else {
      std::cout << shown(key) << text << "\n";
    }
  };
  const auto holder = driver->holder(full, within(lookBound));
  if (holder && ask && !confirmed(key, *holder)) {
    tell("left", " was left as it is");
    return exitBusy;
  }
  if (holder && breakable.breakLock(full, within(lookBound), &*holder)) {
    tell("taken", " was taken from its holder");
    return exitOk;
  }
  const auto other = holder ? driver->holder(full, within(lookBound)) : std::nullopt;
  if (!other) {
    tell("free", " was free");
    return exitOk;
  }
  if (line.has("json")) tell("left", "");
  std::cerr << "lockkeeper: " << shown(key) << " is now held by " << nameOf(*other)
            << ": it was left as it is\n";
  return exitBusy;
}

}  // namespace lockkeeper::cli
