#include <Poco/JSON/Array.h>
#include <Poco/JSON/Object.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "command_settings.h"
#include "commands.h"
#include "exit_codes.h"
#include "inspect/held_keys.h"
#include "inspect/json.h"
#include "inspect/table.h"
#include "lockkeeper/base/key.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/holders.h"
#include "lockkeeper/store/quorum.h"
#include "shown.h"
#include "stores.h"

namespace lockkeeper::cli {
namespace {

using Row = std::vector<std::string>;

std::string nameOf(const Holder& holder) {
  return holder.owner.empty() ? "an unknown client" : shown(holder.owner);
}

std::string namesOf(const std::vector<Holder>& holders) {
  std::string names;
  for (const Holder& each : holders) names += (names.empty() ? "" : ", ") + nameOf(each);
  return names;
}

Row row(std::string_view key, const Holder& holder, std::optional<std::size_t> waiting = {}) {
  return {shown(key),         shownOwner(holder),    shownRemaining(holder),
          shownFence(holder), shownWaiting(waiting), shownShare(holder.share)};
}

Row row(const Quorate::View& view) {
  if (!view.fault.empty()) {
    // Messages name the node; here the first column does.
    const bool named = view.fault.starts_with(view.node);
    const auto text = view.fault.find_first_not_of(": ", named ? view.node.size() : 0);
    return {shown(view.node), "-", oneLine(text == std::string::npos ? view.fault : view.fault.substr(text))};
  }
  if (!view.holder) return {shown(view.node), "-", "free"};
  return {shown(view.node), shownRemaining(*view.holder), "held by " + nameOf(*view.holder)};
}

void printLocks(std::vector<Row> rows) {
  rows.insert(rows.begin(), {"KEY", "OWNER", "REMAINING", "FENCE", "WAITING", "SHARE"});
  hideUsual(rows);
  printTable(rows);
}

void printWaiters(const std::vector<Waiter>& waiters) {
  std::vector<Row> rows{{"WAITS", "FOR", "SHARE"}};
  for (const Waiter& each : waiters) {
    rows.push_back({each.owner.empty() ? "-" : shown(each.owner),
                    each.waited ? shownLength(*each.waited) : "-", shownShare(each.share)});
  }
  hideUsual(rows);
  printTable(rows);
}

Poco::JSON::Array listOf(const std::vector<Waiter>& waiters) {
  Poco::JSON::Array all;
  for (const Waiter& each : waiters) all.add(jsonOf(each));
  return all;
}

void printNodes(const std::vector<Quorate::View>& views) {
  std::vector<Row> rows{{"NODE", "REMAINING", "SAYS"}};
  for (const Quorate::View& view : views) rows.push_back(row(view));
  printTable(rows);
}

Poco::JSON::Object answerOf(std::string_view key, const std::vector<Holder>& holders) {
  if (!holders.empty()) {
    Poco::JSON::Object object = jsonOf(key, holders.front());
    object.set("held", true);
    if (!holders.front().share) return object;
    Poco::JSON::Array all;
    for (const Holder& each : holders) {
      Poco::JSON::Object one = jsonOf(key, each);
      one.remove("key");
      all.add(one);
    }
    for (const char* const own : {"owner", "ownerHex", "remainingMs", "fence", "permits", "limit"})
      object.remove(own);
    object.set("holders", all);
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

/// A key that a command is about, and the store that has it.
struct OpenedKey {
  std::string full;  // with the namespace
  std::shared_ptr<LockDriver> driver;
};

OpenedKey openKey(const CommandLine& line, const std::string& key) {
  const Settings settings = readSettings(line);
  checkNamespace(settings.manager.keyNamespace);
  checkKey(key);
  return {settings.fullKey(key), openStore(settings)};
}

bool confirmed(const std::string& key, const std::vector<Holder>& holders) {
  std::cerr << shown(key) << " is held by " << namesOf(holders) << ". Take it away? [y/N] ";
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

}  // namespace

int showKey(const CommandLine& line) {
  const std::string key = line.operandsOf(1, 1, "one KEY").front();
  const auto [full, driver] = openKey(line, key);
  const std::vector<Holder> holders = holdersOf(*driver, full, soon());
  auto* const queue = capability<WaiterBrowsable>(*driver);
  std::vector<Waiter> waiters;
  if (queue != nullptr) waiters = std::move(queue->waiters(std::span(&full, 1), soon()).front());
  auto* const quorate = capability<Quorate>(*driver);
  if (line.has("json")) {
    Poco::JSON::Object object = answerOf(key, holders);
    if (queue != nullptr) object.set("waiters", listOf(waiters));
    if (quorate != nullptr) object.set("nodes", nodesOf(quorate->views(full, soon())));
    printLine(object);
    return exitOk;
  }
  if (holders.empty()) {
    std::cout << shown(key) << " is free\n";
  } else {
    std::vector<Row> rows;
    for (const Holder& each : holders) rows.push_back(row(key, each));
    printLocks(std::move(rows));
  }
  if (!waiters.empty()) {
    std::cout << "\n";
    printWaiters(waiters);
  }
  if (quorate != nullptr) {
    std::cout << "\n";
    printNodes(quorate->views(full, soon()));
  }
  return exitOk;
}

int listKeys(const CommandLine& line) {
  const auto operands = line.operandsOf(0, 1, "at most one PREFIX");
  const HeldKeys keys(readSettings(line), operands.empty() ? "" : operands.front());
  const LockListing held = keys.look();
  if (line.has("json")) {
    for (const auto& [name, holder] : held.holders) {
      Poco::JSON::Object object = jsonOf(keys.nameOf(name.first), holder);
      if (const auto waiting = held.waiting(name.first)) object.set("waiting", *waiting);
      printLine(object);
    }
    return exitOk;
  }
  std::vector<Row> rows;
  for (const auto& [name, holder] : held.holders)
    rows.push_back(row(keys.nameOf(name.first), holder, held.waiting(name.first)));
  printLocks(std::move(rows));
  return exitOk;
}

int breakKey(const CommandLine& line) {
  const std::string key = line.operandsOf(1, 1, "one KEY").front();
  const bool ask = !line.has("yes");
  if (ask && ::isatty(STDIN_FILENO) == 0)
    throw UsageError("there is no terminal to ask on: break needs --yes");
  const auto [full, driver] = openKey(line, key);
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
  const std::vector<Holder> holders = holdersOf(*driver, full, soon());
  if (!holders.empty() && ask && !confirmed(key, holders)) {
    tell("left", " was left as it is");
    return exitBusy;
  }
  std::size_t broken = 0;
  const auto tellTaken = [&] {
    const std::string all = std::to_string(holders.size());
    tell("taken", broken < holders.size()
                      ? " was taken from " + std::to_string(broken) + " of " + all + " holders"
                  : broken == 1 ? " was taken from its holder"
                                : " was taken from its " + all + " holders");
  };
  try {
    for (const Holder& each : holders) broken += breakable.breakLock(full, soon(), &each) ? 1 : 0;
  } catch (const Error&) {
    if (broken > 0) tellTaken();
    throw;
  }
  if (broken > 0) {
    tellTaken();
    return broken == holders.size() ? exitOk : exitBusy;
  }
  const auto other = holders.empty() ? std::nullopt : driver->holder(full, soon());
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
