#include <iostream>

#include "exit_codes.h"
#include "inspect/table.h"
#include "lockkeeper/error.h"
#include "migrate/observed_migration.h"
#include "shown.h"

namespace lockkeeper::cli {
namespace {

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
  if (member.target == state.current) return wordsOf(state.current);
  return "both, from " + wordsOf(state.current) + " to " + wordsOf(member.target);
}

void printRules(const MigrationState& state, const std::string& name) {
  if (state.version == 0) {
    std::cout << "rules:     none yet in the migration '" << name << "'\n";
    return;
  }
  std::cout << "rules:     version " << state.version << ", since " << shownLength(state.since) << "\n"
            << "current:   " << wordsOf(state.current) << "\n"
            << "target:    " << (state.target ? wordsOf(*state.target) : "as each process is configured")
            << "\n";
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

}  // namespace

int showMigration(const CommandLine& line) {
  line.operandsOf(0, 0, "nothing after migrate status");
  const ObservedMigration seen = observe(readSettings(line));
  const MigrationState& state = seen.state;
  printRules(state, seen.settings.options.name);
  printSighting(state);
  printMembers(state);
  // Without an operator's word, whoever wants to go elsewhere is the one that waits.
  Rules target = state.target.value_or(state.current);
  for (const Member& member : state.members) {
    if (!state.target && !(member.target == state.current)) target = member.target;
  }
  if (target == state.current) {
    std::cout << "next step: none is under way\n";
  } else {
    printBlockers(state, target, seen.settings.options.observation);
  }
  return exitOk;
}

}  // namespace lockkeeper::cli
