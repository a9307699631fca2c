#include <algorithm>
#include <iostream>

#include "command_settings.h"
#include "commands.h"
#include "exit_codes.h"
#include "inspect/json.h"
#include "known_stores.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/error.h"
#include "migrate/migrate.h"
#include "shown.h"
#include "stores.h"

namespace lockkeeper::cli {
namespace {

using migration::MigrationState;
using migration::Rule;
using migration::Rules;

/// What `make` returns; what is wrong with the rules is wrong with the command line.
template <class Make>
Rules rulesFrom(Make&& make) {
  try {
    return make();
  } catch (const ConfigError& error) {
    throw UsageError(error.what());
  }
}

/// Throws UsageError for keys that would skip a phase.
void checkOrder(const MigrationState& state, const Rules& wanted) {
  const auto key = Rules::jump(state.current, wanted);
  if (!key) return;
  const std::string from = toString(state.current.phaseOf(*key));
  const std::string underWay =
      !(state.target == state.current)
          ? ", and wait until the present change is complete (lockkeeper migrate status)"
          : "";
  throw UsageError("keys such as " + lockkeeper::quoted(*key) + " would go from " + from + " to " +
                   toString(wanted.phaseOf(*key)) + " at once: advance them to both first" + underWay);
}

bool anyHeldKeyMatches(LockDriver& store, const Rule& rule) {
  auto* browsable = capability<Browsable>(store);
  if (browsable == nullptr) return true;  // nobody knows
  bool found = false;
  browsable->list(
      "",
      [&](std::string_view key, const Holder&) {
        found = rule.matches(key);
        return !found;
      },
      soon());
  return found;
}

/// Mistyped rules match nothing: worth a word, and no more, since keys come and go.
void warnOfIdleRules(const Settings& settings, const Rules& change, const Rules& wanted) {
  const auto warn = [](const std::string& text) {
    std::cerr << "lockkeeper: warning: " << oneLine(text) << "\n";
  };
  for (const std::string& rule : wanted.idle())
    warn("the rule " + lockkeeper::quoted(rule) + " can match no key");
  const StoreRegistry registry = knownStores();
  for (const Rule& rule : change.rules()) {
    if (rule.pattern == "*") continue;
    try {
      const auto matches = [&](const std::string& uri) {
        return anyHeldKeyMatches(*registry.open(uri), rule);
      };
      if (!matches(settings.migration.from) && !matches(settings.store)) {
        warn("no key that is held now matches " + lockkeeper::quoted(rule.pattern));
      }
    } catch (const Error&) {
      // It was only a look.
    }
  }
}

void explain(const MigrationState& state, const Rules& wanted, const ObservedMigration& seen) {
  const auto& options = seen.settings.options;
  std::cout << "rules now:  " << shown(state.target.text()) << "\n"
            << "rules then: " << shown(wanted.text()) << "\n"
            << "Within a heartbeat (" << shownLength(options.heartbeat) << ") all " << state.members.size()
            << " members take the keys whose phase changes in both stores.\n";
  const bool leaves = keysLeaveOldStore(state.current, wanted);
  std::cout
      << "The change completes by itself when all have done so and no lock in the phase that is left can "
         "live: after "
      << shownLength(options.lease + options.maxTtl)
      << (leaves ? ", and when nobody else was seen in the old store for " + shownLength(options.observation)
                 : "")
      << ".\n";
}

/// `version` is that of the rules after the command.
void printAsJson(const MigrationState& before, const Rules& wanted, std::uint64_t version, bool written) {
  Poco::JSON::Object object = newObject();
  setText(object, "before", before.target.text());
  setText(object, "after", wanted.text());
  object.set("version", version);
  object.set("written", written);
  printLine(object);
}

}  // namespace

int advanceMigration(const CommandLine& line) {
  const auto operands = line.operandsOf(1, 1, "one RULE after migrate advance");
  const Rules change = rulesFrom([&] { return Rules::parse(operands.back()); });
  const Settings settings = readMigrationSettings(line);
  ObservedMigration seen = observe(settings);
  const MigrationState& state = seen.state;
  const Rules wanted = rulesFrom([&] { return state.target.changedBy(change); });
  checkOrder(state, wanted);
  warnOfIdleRules(settings, change, wanted);
  const bool json = line.has("json");
  const bool already = state.version > 0 && state.target == wanted;
  if (json && (already || line.has("dry-run"))) {
    printAsJson(state, wanted, state.version, false);
    return exitOk;
  }
  if (already) {
    std::cout << "the rules say so already: " << shown(wanted.text()) << "\n";
    return exitOk;
  }
  if (!json) explain(state, wanted, seen);
  if (line.has("dry-run")) {
    std::cout << "dry run: nothing was written\n";
    return exitOk;
  }
  if (!seen.stateStore.change(state, state.version + 1, state.current, wanted, soon())) {
    std::cerr << "lockkeeper: somebody else has changed the rules meanwhile: look at migrate status\n";
    return exitBusy;
  }
  if (json) {
    printAsJson(state, wanted, state.version + 1, true);
  } else {
    std::cout << "written as version " << state.version + 1 << "\n";
  }
  return exitOk;
}

}  // namespace lockkeeper::cli
