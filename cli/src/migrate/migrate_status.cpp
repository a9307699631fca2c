#include <Poco/JSON/Array.h>

#include <iostream>
#include <optional>

#include "command_settings.h"
#include "exit_codes.h"
#include "inspect/json.h"
#include "inspect/table.h"
#include "lockkeeper/error.h"
#include "migrate/migrate.h"
#include "shown.h"

namespace lockkeeper::cli {
namespace {

using migration::Blocker;
using migration::Member;
using migration::MigrationState;
using migration::Rules;

/// One word where one phase is for all keys.
std::string wordsOf(const Rules& rules) {
  const auto& all = rules.rules();
  return all.size() == 1 && all.front().text().starts_with("* =") ? toString(all.front().phase)
                                                                  : shown(rules.text());
}

/// In which phase it takes its locks.
std::string phaseOf(const Member& member, const MigrationState& state) {
  if (member.silent > member.lease) return "both (silent)";
  if (member.version != state.version) return "by older rules";
  if (state.target == state.current) return wordsOf(state.current);
  return "both, from " + wordsOf(state.current) + " to " + wordsOf(state.target);
}

void printRules(const MigrationState& state, const std::string& name) {
  if (state.version == 0) {
    std::cout << "rules:     none yet in the migration '" << name << "'\n";
    return;
  }
  std::cout << "rules:     version " << state.version << ", since " << shownLength(state.since) << "\n"
            << "current:   " << wordsOf(state.current) << "\n"
            << "target:    " << wordsOf(state.target) << "\n";
}

void printSighting(const MigrationState& state) {
  std::cout << "last legacy sighting: ";
  if (state.sighting) {
    std::cout << shownLength(state.sighting->ago) << " ago, " << quoted(state.sighting->key) << "\n";
  } else {
    std::cout << "none\n";
  }
}

void printMembers(const MigrationState& state) {
  std::vector<std::vector<std::string>> rows{{"MEMBER", "VERSION", "HEARTBEAT", "PHASE"}};
  for (const Member& member : state.members) {
    rows.push_back({shown(member.name()), std::to_string(member.version), shownLength(member.silent) + " ago",
                    phaseOf(member, state)});
  }
  std::cout << "\n";
  printTable(rows);
  std::cout << "\n";
}

/// What the next step waits for, also that somebody takes it.
std::vector<Blocker> blockersOf(const ObservedMigration& seen) {
  auto blockers = migration::blockersOf(seen.state, seen.settings.options.observation);
  if (seen.state.members.empty()) {
    blockers.insert(blockers.begin(),
                    {"no member is running: start a process that takes part", std::nullopt});
  }
  return blockers;
}

bool stepUnderWay(const MigrationState& state) { return !(state.target == state.current); }

/// In whole seconds, rounded up, so that who waits so long does not come too early.
std::string leftOf(const Blocker& blocker) {
  return blocker.left ? " (for " + shownLength(*blocker.left + std::chrono::milliseconds{999}) + ")" : "";
}

void printNextStep(const ObservedMigration& seen) {
  if (!stepUnderWay(seen.state)) {
    std::cout << "next step: none is under way\n";
    return;
  }
  const auto blockers = blockersOf(seen);
  // Each member measures all of this itself.
  const std::string taker = "a process that has watched for as long takes it";
  if (blockers.empty()) {
    std::cout << "next step: nothing blocks it; " << taker << "\n";
    return;
  }
  std::cout << "next step: blocked\n";
  for (const Blocker& blocker : blockers) {
    std::cout << "  - " << oneLine(blocker.what) << leftOf(blocker) << "\n";
  }
  std::cout << "  then " << taker << "\n";
}

Poco::JSON::Array membersOf(const MigrationState& state) {
  Poco::JSON::Array all;
  for (const Member& member : state.members) {
    Poco::JSON::Object object = newObject();
    setText(object, "member", member.name());
    object.set("version", member.version);
    setLength(object, "silentMs", member.silent);
    setText(object, "phase", phaseOf(member, state));
    all.add(object);
  }
  return all;
}

void setNextStep(Poco::JSON::Object& object, const ObservedMigration& seen) {
  object.set("next", Poco::Dynamic::Var());
  if (!stepUnderWay(seen.state)) return;
  Poco::JSON::Array blockers;
  for (const Blocker& blocker : blockersOf(seen)) {
    Poco::JSON::Object each = newObject();
    setText(each, "what", blocker.what);
    setLength(each, "leftMs", blocker.left);
    blockers.add(each);
  }
  Poco::JSON::Object next = newObject();
  setText(next, "rules", seen.state.target.text());
  next.set("blockers", blockers);
  object.set("next", next);
}

void printAsJson(const ObservedMigration& seen) {
  const MigrationState& state = seen.state;
  Poco::JSON::Object object = newObject();
  object.set("name", seen.settings.options.name);
  object.set("version", state.version);
  setLength(object, "sinceMs", state.version == 0 ? std::nullopt : std::optional(state.since));
  setText(object, "current", state.current.text());
  object.set("target", Poco::Dynamic::Var());
  if (state.version > 0) setText(object, "target", state.target.text());
  object.set("lastSighting", Poco::Dynamic::Var());
  if (state.sighting) {
    Poco::JSON::Object sighting = newObject();
    setText(sighting, "key", state.sighting->key);
    setLength(sighting, "agoMs", state.sighting->ago);
    object.set("lastSighting", sighting);
  }
  object.set("members", membersOf(state));
  setNextStep(object, seen);
  printLine(object);
}

}  // namespace

int showMigration(const CommandLine& line) {
  line.operandsOf(0, 0, "nothing after migrate status");
  const ObservedMigration seen = observe(readMigrationSettings(line));
  if (line.has("json")) {
    printAsJson(seen);
    return exitOk;
  }
  const MigrationState& state = seen.state;
  printRules(state, seen.settings.options.name);
  printSighting(state);
  printMembers(state);
  printNextStep(seen);
  return exitOk;
}

}  // namespace lockkeeper::cli
