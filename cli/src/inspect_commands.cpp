#include <unistd.h>

#include <array>

#include <algorithm>
#include <iostream>
#include <vector>

#include "commands.h"
#include "exit_codes.h"
#include "lockkeeper/capabilities.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/key.h"

namespace lockkeeper::cli {
namespace {

constexpr std::chrono::seconds lookBound{5};
constexpr std::chrono::minutes listBound{1};
constexpr std::size_t columns = 4;

using Row = std::array<std::string, columns>;

Instant within(std::chrono::nanoseconds bound) { return saturatingAdd(systemClock()->now(), bound); }

/// As it is, so that it can be copied into a command line, unless that would spoil the terminal.
std::string shown(std::string_view key) {
  const bool plain =
      std::none_of(key.begin(), key.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; });
  return plain ? std::string(key) : quoted(key);
}

Row row(std::string_view key, const Holder& holder) {
  return {shown(key), holder.owner.empty() ? "-" : holder.owner,
          holder.remaining ? formatDuration(*holder.remaining) : "for ever",
          holder.fence ? std::to_string(*holder.fence) : "-"};
}

void print(std::vector<Row> rows) {
  rows.insert(rows.begin(), {"KEY", "OWNER", "REMAINING", "FENCE"});
  std::array<std::size_t, columns> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < columns; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < columns; ++i) {
      if (i > 0) line += "  ";
      line += row[i];
      if (i + 1 < columns) line.append(widths[i] - row[i].size(), ' ');
    }
    std::cout << line << "\n";
  }
}

template <class Capability>
Capability& capability(LockDriver& driver, const char* what) {
  auto* able = dynamic_cast<Capability*>(&driver);
  if (able == nullptr) throw ConfigError(std::string("this store cannot ") + what);
  return *able;
}

bool confirmed(const std::string& key, const Holder& holder) {
  std::cerr << shown(key) << " is held by " << (holder.owner.empty() ? "an unknown client" : holder.owner)
            << ". Take it away? [y/N] ";
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

}  // namespace

int showKey(const CommandLine& line) {
  const std::string key = line.operandsOf(1, 1, "one KEY").front();
  const Settings settings = readSettings(line);
  const std::string full = settings.fullKey(key);
  checkNamespace(settings.keyNamespace);
  checkKey(key);
  const auto holder = openStore(settings)->holder(full, within(lookBound));
  if (holder) {
    print({row(key, *holder)});
  } else {
    std::cout << shown(key) << " is free\n";
  }
  return exitOk;
}

int listKeys(const CommandLine& line) {
  const auto operands = line.operandsOf(0, 1, "at most one PREFIX");
  const Settings settings = readSettings(line);
  checkNamespace(settings.keyNamespace);
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
  print(std::move(rows));
  return exitOk;
}

int breakKey(const CommandLine& line) {
  const std::string key = line.operandsOf(1, 1, "one KEY").front();
  const bool ask = !line.has("yes");
  if (ask && ::isatty(STDIN_FILENO) == 0)
    throw UsageError("there is no terminal to ask on: break needs --yes");
  const Settings settings = readSettings(line);
  const std::string full = settings.fullKey(key);
  checkNamespace(settings.keyNamespace);
  checkKey(key);
  const auto driver = openStore(settings);
  auto& breakable = capability<Breakable>(*driver, "break locks");
  const auto holder = driver->holder(full, within(lookBound));
  if (holder && ask && !confirmed(key, *holder)) {
    std::cout << shown(key) << " was left as it is\n";
    return exitBusy;
  }
  const bool broken = holder && breakable.breakLock(full, within(lookBound));
  std::cout << shown(key) << (broken ? " was taken from its holder\n" : " was free\n");
  return exitOk;
}

}  // namespace lockkeeper::cli
