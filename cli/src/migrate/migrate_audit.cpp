#include <array>
#include <iomanip>
#include <iostream>
#include <string>

#include "command_settings.h"
#include "commands.h"
#include "exit_codes.h"
#include "inspect/json.h"
#include "lockkeeper/base/key.h"
#include "lockkeeper/error.h"
#include "lockkeeper/redis/legacy_driver.h"
#include "migrate/migrate.h"
#include "shown.h"
#include "stores.h"

namespace lockkeeper::cli {
namespace {

using redis::LegacyClass;
using redis::LegacyKey;
using redis::LegacyRedisDriver;

constexpr std::chrono::minutes auditBound{10};
constexpr int classColumn = 21;
constexpr std::array classes{LegacyClass::held, LegacyClass::expired, LegacyClass::phantom,
                             LegacyClass::foreign, LegacyClass::ours};

// Of a lock: it names a time.
std::string timeOf(const LegacyKey& key) {
  const bool past = key.remaining->count() <= 0;
  // Whole seconds are what the scheme knows.
  const auto seconds = std::chrono::round<std::chrono::seconds>(past ? -*key.remaining : *key.remaining);
  return past ? "expired " + shownLength(seconds) + " ago" : "for " + shownLength(seconds);
}

std::string detailOf(const LegacyKey& key) {
  const std::string what = key.what.empty() ? std::string() : ", " + key.what;
  switch (key.kind) {
    case LegacyClass::held:
      return timeOf(key) +
             (*key.remaining > key.remaining->zero() ? "" : ", within the allowance for clocks") + what;
    case LegacyClass::expired:
      return timeOf(key) + ", its TTL will remove it" + what;
    case LegacyClass::phantom:
      return timeOf(key) + ", stays until it is taken over" + what;
    case LegacyClass::foreign:
      return key.what;
    case LegacyClass::ours:
      return timeOf(key) + (key.owner.empty() ? "" : ", " + shown(key.owner));
  }
  return {};
}

using Counts = std::array<std::size_t, classes.size()>;

void printKey(const LegacyKey& key, std::string_view name) {
  std::cout << std::left << std::setw(classColumn) << toString(key.kind) << shown(name) << "  ("
            << detailOf(key) << ")\n";
}

void printKeyAsJson(const LegacyKey& key, std::string_view name) {
  Poco::JSON::Object object = newObject();
  setText(object, "key", name);
  object.set("class", toString(key.kind));
  setOwner(object, key.owner);
  setLength(object, "remainingMs", key.remaining);
  object.set("what", key.what.empty() ? Poco::Dynamic::Var() : Poco::Dynamic::Var(key.what));
  printLine(object);
}

void printSummaryAsJson(const Counts& counts) {
  Poco::JSON::Object byClass = newObject();
  for (const LegacyClass kind : classes) {
    byClass.set(toString(kind), counts.at(static_cast<std::size_t>(kind)));
  }
  Poco::JSON::Object object = newObject();
  object.set("counts", byClass);
  printLine(object);
}

void printSummary(const Counts& counts) {
  std::size_t all = 0;
  std::string parts;
  for (const LegacyClass kind : classes) {
    const std::size_t count = counts.at(static_cast<std::size_t>(kind));
    all += count;
    parts.append(parts.empty() ? "" : ", ").append(toString(kind)).append(" " + std::to_string(count));
  }
  std::cout << all << (all == 1 ? " key: " : " keys: ") << parts << "\n";
}

}  // namespace

int auditLegacyKeys(const CommandLine& line) {
  const auto operands = line.operandsOf(0, 1, "at most one PREFIX");
  const Settings settings = readSettings(line);
  checkNamespace(settings.manager.keyNamespace);
  const auto driver = openStore(settings);
  auto* legacy = capability<LegacyRedisDriver>(*driver);
  if (legacy == nullptr) throw ConfigError("migrate audit looks at redis+legacy:// stores only");
  const std::size_t hidden = settings.fullKey("").size();
  const bool json = line.has("json");
  Counts counts{};
  // Each key at once: there may be more than one wants to keep.
  const auto print = [&](const LegacyKey& key) {
    ++counts.at(static_cast<std::size_t>(key.kind));
    const std::string_view name = key.key.substr(hidden);
    json ? printKeyAsJson(key, name) : printKey(key, name);
    return static_cast<bool>(std::cout);  // as long as somebody reads it
  };
  legacy->audit(settings.fullKey(operands.empty() ? "" : operands.front()), print,
                saturatingAdd(systemClock()->now(), auditBound));
  json ? printSummaryAsJson(counts) : printSummary(counts);
  return exitOk;
}

}  // namespace lockkeeper::cli
