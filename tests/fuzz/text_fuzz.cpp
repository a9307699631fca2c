// Durations, rates, cron expressions, time zones, rules of migrations and keys of arbitrary bytes: each is
// read or refused in one line, and what was read can be written and read again.

#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>

#include "fuzz_target.h"
#include "lockkeeper/base/key.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/migration/rules.h"
#include "lockkeeper/rate_policy.h"
#include "lockkeeper/schedule/schedule.h"

namespace {

using namespace std::chrono_literals;

bool isPrintableLine(std::string_view text) {
  for (const char each : text)
    if (each < ' ' || each > '~') return false;
  return true;
}

template <class Fault, class Read>
void readOrRefuse(Read read) {
  try {
    read();
  } catch (const Fault& fault) {
    require(isPrintableLine(fault.what()), "errors are one line of ASCII");
  }
}

void checkTicks(const lockkeeper::Schedule& schedule) {
  std::chrono::sys_seconds tick = std::chrono::sys_days{std::chrono::year{2026} / 1 / 1};
  for (int i = 0; i < 3; ++i) {
    const std::chrono::sys_seconds next = schedule.next(tick);
    require(next > tick, "a tick is after the one before it");
    require(schedule.next(next - 1s) == next, "nothing is due between two ticks");
    tick = next;
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockkeeper;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  readOrRefuse<ConfigError>([&] {
    const std::chrono::milliseconds length = parseDuration("ttl", text);
    require(parseDuration("ttl", formatDuration(length)) == length, "a duration is read as it was written");
  });
  readOrRefuse<ConfigError>([&] { Rate::parse("rate", text); });
  readOrRefuse<std::invalid_argument>([&] { checkTicks(Schedule::cron(text)); });
  readOrRefuse<std::invalid_argument>(
      [&] { checkTicks(Schedule::cron("30 2 * * *", TimeZone::fromBytes("Somewhere", text))); });
  readOrRefuse<ConfigError>([&] {
    const migration::Rules rules = migration::Rules::parse(text);
    require(migration::Rules::parse(rules.text()) == rules, "rules are read as they were written");
    rules.phaseOf(text);
    require(migration::Rules::jump(rules, rules) == std::nullopt, "rules that stay the same skip no phase");
  });
  readOrRefuse<std::invalid_argument>([&] { checkKey(text); });
  require(isPrintableLine(quoted(text)), "what is quoted is one line of ASCII");
  return 0;
}

std::vector<std::string> fuzzSeeds() {
  return {"250ms", "30s", "24h", "100/min", "5/30s", "1/day", "*/5 * * * *", "0 9-17/2 1,15 JAN-JUN MON-FRI",
          "30 2 29 2 *", "@weekly", "order:* 25% = both, order:* = legacy, 10% = modern", "modern",
          "order:?:* = both",
          // Two offsets, a change in 2026, and the rule after it.
          std::string("TZif2", 5) + std::string(15, '\0') + std::string(24, '\0') + std::string("TZif2", 5) +
              std::string(15, '\0') + std::string("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\2\0\0\0\10", 24) +
              std::string("\0\0\0\0\x69\x55\xb9\0\1\0\0\x0e\x10\0\0\0\0\x1c\x20\1\4CET\0CEST", 29) +
              std::string(1, '\0') + "\nCET-1CEST,M3.5.0,M10.5.0/3\n"};
}
