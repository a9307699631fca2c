#include <iostream>

#include "exit_codes.h"
#include "inspect/table.h"
#include "lockkeeper/driver/key.h"
#include "migrate/migrate_board.h"

namespace lockkeeper::cli {
namespace {

using migration::BoardState;
using migration::Member;
using migration::Rules;

/// One word where one phase is for all keys.
std::string shown(const Rules& rules) {
  const auto& all = rules.rules();
  return all.size() == 1 && all.front().text().starts_with("* =") ? toString(all.front().phase)
                                                                  : rules.text();
}

/// In which phase it takes its locks.
std::string phaseOf(const Member& member, const BoardState& state) {
  if (member.silent > member.lease) return "both (silent)";
  if (member.version != state.version) return "by older rules";
  if (member.target == state.settled) return shown(state.settled);
  return "both, from " + shown(state.settled) + " to " + shown(member.target);
}

void printRules(const BoardState& state, const std::string& name) {
  if (state.version == 0) {
    std::cout << "rules:     none yet on the board '" << name << "'\n";
    return;
  }
  std::cout << "rules:     version " << state.version << ", since " << rough(state.since) << "\n"
            << "settled:   " << shown(state.settled) << "\n"
            << "target:    " << (state.target ? shown(*state.target) : "as each process is configured")
            << "\n";
}

void printSighting(const BoardState& state) {
  std::cout << "last legacy sighting: ";
  if (state.sighting) {
    std::cout << rough(state.sighting->ago) << " ago, " << quoted(state.sighting->key) << "\n";
  } else {
    std::cout << "none\n";
  }
}

void printMembers(const BoardState& state) {
  std::vector<std::vector<std::string>> rows{{"MEMBER", "VERSION", "HEARTBEAT", "PHASE"}};
  for (const Member& member : state.members) {
    rows.push_back({member.name(), std::to_string(member.version), rough(member.silent) + " ago",
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
  const BoardState& state = seen.state;
  printRules(state, seen.settings.options.name);
  printSighting(state);
  printMembers(state);
  // Without an operator's word, whoever wants to go elsewhere is the one that waits.
  Rules target = state.target.value_or(state.settled);
  for (const Member& member : state.members) {
    if (!state.target && !(member.target == state.settled)) target = member.target;
  }
  if (target == state.settled) {
    std::cout << "next step: none is under way\n";
  } else {
    printBlockers(state, target, seen.settings.options.observation);
  }
  return exitOk;
}

}  // namespace lockkeeper::cli
