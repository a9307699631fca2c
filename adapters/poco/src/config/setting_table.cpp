#include "config/setting_table.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "config/setting_row.h"
#include "lockkeeper/base/key.h"
#include "lockkeeper/internal/edit_distance.h"

namespace lockkeeper::poco {
namespace {

/// A name that others see: of a namespace, of a migration.
void parseName(const GivenValue& given, std::string& name) {
  asConfigured("", [&] { checkName(given.setting, given.text); });
  name = given.text;
}

/// A length, or `forever`.
void parseOutage(const GivenValue& given, std::chrono::milliseconds& length) {
  if (given.text == "forever") {
    length = forever;
    return;
  }
  try {
    parse(given, length);
  } catch (const ConfigError& error) {
    throw ConfigError(error.what() + std::string("; forever is allowed, too"));
  }
}

/// RatePolicy::parse() reads them, all of a limit together.
void readLimit(Settings& settings, const GivenValue& given) {
  settings.limits[given.names.front()][given.setting.substr(given.setting.rfind('.') + 1)] = given.text;
}

TaskOptions& task(Settings& settings, const Names& names) {
  TaskOptions& options = settings.tasks[names.front()];
  options.name = names.front();
  return options;
}

/// Of a task, which there is then.
TaskSchedule& schedule(Settings& settings, const Names& names) {
  return settings.schedules[task(settings, names).name];
}

constexpr SettingRow limitRow(std::string_view name, std::string_view value, std::string_view fallback,
                              std::string_view meaning) {
  return {name, value, fallback, meaning, readLimit, nullptr};
}

constexpr std::array rows{
    row(
        "lockkeeper.store", uriText, "(required)",
        "Where locks and limits are: `memory:` (this process alone), `redis://host:6379/0` or another store.",
        [](Settings& s, const Names&) -> auto& { return s.store; }),
    SettingRow{"lockkeeper.namespace", nameText, "(none)",
               "A prefix of each key, followed by ':', so that several applications can share a store.",
               [](Settings& s, const GivenValue& given) { parseName(given, s.manager.keyNamespace); },
               nullptr},

    row(
        "lockkeeper.lock.ttl", durationText, "30s",
        "How long the store keeps the lock of a holder that has gone silent (10ms to 24h).",
        [](Settings& s, const Names&) -> auto& { return s.manager.lock.ttl; }),
    row(
        "lockkeeper.lock.waitFor", durationText, "(tryLock: 0s, lock: no bound)",
        "How long to wait for a busy key or a store that is down (at most 24h).",
        [](Settings& s, const Names&) -> auto& { return s.manager.lock.waitFor; }),
    row(
        "lockkeeper.lock.renew", "automatic, manual", "automatic",
        "Whether leases are renewed until the lock is released, or end after `ttl`.",
        [](Settings& s, const Names&) -> auto& { return s.manager.lock.renew; }),
    row(
        "lockkeeper.lock.maxHold", durationText, "(no bound)",
        "The longest that a lock may be held; then it is lost.",
        [](Settings& s, const Names&) -> auto& { return s.manager.lock.maxHold; }),
    row(
        "lockkeeper.lock.safetyMargin", durationText, "(a tenth of ttl)",
        "How long before the end of its lease a lock counts as lost.",
        [](Settings& s, const Names&) -> auto& { return s.manager.lock.safetyMargin; }),
    row(
        "lockkeeper.lock.owner", "text", "(host:pid)", "The label under which others see who holds a lock.",
        [](Settings& s, const Names&) -> auto& { return s.manager.owner; }),
    row(
        "lockkeeper.lock.operationTimeout", durationText, "",
        "How long one request to the store may take (1ms to 1h).",
        [](Settings& s, const Names&) -> auto& { return s.manager.operationTimeout; }),
    SettingRow{"lockkeeper.lock.longestOutage", "duration, forever", "1m",
               "How long a call without a bound on its wait waits for a store that cannot be reached (1ms to "
               "24h, or `forever`); a busy key is waited for in any case.",
               [](Settings& s, const GivenValue& given) { parseOutage(given, s.manager.longestOutage); },
               nullptr},

    row(
        "lockkeeper.limiter.store", uriText, "(lockkeeper.store)",
        "Where limits are, if not beside the locks.",
        [](Settings& s, const Names&) -> auto& { return s.limiterStore; }),
    row(
        "lockkeeper.limiter.operationTimeout", durationText, "",
        "How long one request to the store may take before `outage` decides (1ms to 1h).",
        [](Settings& s, const Names&) -> auto& { return s.limiter.operationTimeout; }),

    limitRow("lockkeeper.limits.*.rate", "rate", "(required)",
             "How many units per time: `2/s`, `100/min`, `1/day`, `5/30s`."),
    limitRow("lockkeeper.limits.*.burst", numberText, "(the rate's count)",
             "The capacity of a bucket or queue; windows have none."),
    limitRow("lockkeeper.limits.*.kind",
             "token-bucket, leaky-meter, leaky-queue, sliding-window, fixed-window", "token-bucket",
             "The algorithm: see [rate-limiting.md](rate-limiting.md)."),
    limitRow("lockkeeper.limits.*.outage", "closed, open, local", "closed",
             "What happens while the store is down: refuse all, allow all, or allow this process's share."),
    limitRow("lockkeeper.limits.*.processes", numberText, "1",
             "How many processes share the limit, for `outage = local`."),

    row(
        "lockkeeper.tasks.*.atLeast", durationText, "",
        "For how long after the start of a run no other run begins (at most 24h): see [tasks.md](tasks.md).",
        [](Settings& s, const Names& names) -> auto& { return task(s, names).atLeast; }),
    row(
        "lockkeeper.tasks.*.atMost", durationText, "",
        "How long a run may take; then it is told to stop (10ms and `atLeast` to 8784h).",
        [](Settings& s, const Names& names) -> auto& { return task(s, names).atMost; }),
    row(
        "lockkeeper.tasks.*.ttl", durationText, "",
        "The lease: how soon another process may run the task after its process has died (10ms to 24h).",
        [](Settings& s, const Names& names) -> auto& { return task(s, names).ttl; }),
    row(
        "lockkeeper.tasks.*.cron", "cron expression", "(none)",
        "When it runs, as in `30 2 * * *` or `@hourly`: see [schedules.md](schedules.md).",
        [](Settings& s, const Names& names) -> auto& { return schedule(s, names).cron; }),
    row(
        "lockkeeper.tasks.*.timeZone", nameText, "", "The time zone of `cron`, such as `Europe/Berlin`.",
        [](Settings& s, const Names& names) -> auto& { return schedule(s, names).timeZone; }),
    row(
        "lockkeeper.tasks.*.every", durationText, "(none)",
        "Instead of `cron`: it runs at whole multiples of this time since 1970 in UTC (1s to 8784h).",
        [](Settings& s, const Names& names) -> auto& { return schedule(s, names).every; }),
    row(
        "lockkeeper.tasks.*.missed", "skip, once", "",
        "Whether the latest tick is run late if no process was awake for it.",
        [](Settings& s, const Names& names) -> auto& { return schedule(s, names).options.missed; }),
    row(
        "lockkeeper.tasks.*.clockSkew", durationText, "",
        "How far apart the wall clocks of the machines may be (at most 1h).",
        [](Settings& s, const Names& names) -> auto& { return schedule(s, names).options.clockSkew; }),

    row(
        "lockkeeper.migration.from", uriText, "(no migration)",
        "The old store, when locks move from it to `lockkeeper.store`: see [migrating.md](migrating.md).",
        [](Settings& s, const Names&) -> auto& { return s.migration.from; }),
    row(
        "lockkeeper.migration.phase", "legacy, both, modern, or rules", "legacy",
        "The phase or rules that the process writes if nobody has written any. All processes follow what is "
        "written: `lockkeeper migrate advance` changes it.",
        [](Settings& s, const Names&) -> auto& { return s.migration.options.rules; }),
    row(
        "lockkeeper.migration.stateStore", uriText, "(lockkeeper.store)",
        "The store that keeps the migration's state, if the new one cannot.",
        [](Settings& s, const Names&) -> auto& { return s.migration.stateStore; }),
    SettingRow{"lockkeeper.migration.name", nameText, "migration",
               "The migration's name: the same in all processes that share the keys.",
               [](Settings& s, const GivenValue& given) { parseName(given, s.migration.options.name); },
               nullptr},
    row(
        "lockkeeper.migration.heartbeat", durationText, "",
        "How often the process reads the migration's state, and thus how soon it follows (10ms to 1m).",
        [](Settings& s, const Names&) -> auto& { return s.migration.options.heartbeat; }),
    row(
        "lockkeeper.migration.lease", durationText, "",
        "How long the process continues in one store while the migration's state is out of reach (at most "
        "10m).",
        [](Settings& s, const Names&) -> auto& { return s.migration.options.lease; }),
    row(
        "lockkeeper.migration.maxTtl", durationText, "",
        "The longest ttl that a lock may have during the migration (10ms to 24h).",
        [](Settings& s, const Names&) -> auto& { return s.migration.options.maxTtl; }),
    row(
        "lockkeeper.migration.observation", durationText, "",
        "For how long no other holder may have been seen in the old store before keys leave it (at most "
        "24h).",
        [](Settings& s, const Names&) -> auto& { return s.migration.options.observation; }),
};

/// What had another name once, which is too far from the present one to be guessed.
constexpr std::array renamed{
    std::pair<std::string_view, std::string_view>{"lockkeeper.migration.board",
                                                  "lockkeeper.migration.stateStore"},
};

/// What there was once, and what to do instead.
constexpr std::string_view withoutPrefetch =
    "remove it, and each call is decided by the store; calls of one process for the same key share requests "
    "by "
    "themselves";
constexpr std::array removed{
    std::pair<std::string_view, std::string_view>{"lockkeeper.limits.*.prefetch", withoutPrefetch},
    std::pair<std::string_view, std::string_view>{"lockkeeper.limits.*.prefetchIdle", withoutPrefetch},
};

/// What all settings are, those of lockkeeper.http last.
const std::vector<SettingRow>& table() {
  static const auto& all = *[] {
    auto* both = new std::vector<SettingRow>(rows.begin(), rows.end());
    both->insert(both->end(), httpRows().begin(), httpRows().end());
    return both;
  }();
  return all;
}

std::vector<std::string_view> segmentsOf(std::string_view name) {
  std::vector<std::string_view> segments;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    segments.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return segments;
}

using Segments = std::span<const std::string_view>;

/// Whether the pattern stands for the name; `*` is one segment or more, as few as possible. Adds to `names`
/// what stands for each.
bool match(Segments pattern, Segments given, Names& names) {
  if (pattern.empty() || given.empty()) return pattern.empty() && given.empty();
  if (pattern.front() != "*") {
    return pattern.front() == given.front() && match(pattern.subspan(1), given.subspan(1), names);
  }
  const std::size_t known = names.size();
  std::string name;
  for (; !given.empty(); given = given.subspan(1)) {
    name.append(name.empty() ? "" : ".").append(given.front());
    names.push_back(name);
    if (match(pattern.subspan(1), given.subspan(1), names)) return true;
    names.resize(known);
  }
  return false;
}

/// The row's name with the user's own segments of `setting`, as far as it has them.
std::string filledIn(std::string_view pattern, Segments given) {
  std::string full;
  std::size_t at = 0;
  for (const std::string_view segment : segmentsOf(pattern)) {
    const std::string_view own = at < given.size() ? given[at] : "NAME";
    full.append(full.empty() ? "" : ".").append(segment == "*" ? own : segment);
    ++at;
  }
  return full;
}

}  // namespace

std::string SettingRow::shownDefault() const {
  if (initial != nullptr) return "`" + initial() + "`";
  if (!fallback.starts_with('(')) return "`" + std::string(fallback) + "`";
  return std::string(fallback.substr(1, fallback.size() - 2));
}

std::span<const SettingRow> settingTable() { return table(); }

std::optional<FoundSetting> findSetting(std::string_view setting) {
  const auto given = segmentsOf(setting);
  for (const SettingRow& row : table()) {
    Names names;
    if (match(segmentsOf(row.name), given, names)) return FoundSetting{&row, std::move(names)};
  }
  return std::nullopt;
}

std::string_view insteadOf(std::string_view setting) {
  const auto given = segmentsOf(setting);
  for (const auto& [name, advice] : removed) {
    Names names;
    if (match(segmentsOf(name), given, names)) return advice;
  }
  return {};
}

std::string nearestSetting(std::string_view setting) {
  const auto* const other =
      std::ranges::find(renamed, setting, [](const auto& names) { return names.first; });
  if (other != renamed.end()) return std::string(other->second);
  const auto given = segmentsOf(setting);
  std::string nearest;
  auto least = std::numeric_limits<std::size_t>::max();
  for (const SettingRow& row : table()) {
    std::string known = filledIn(row.name, given);
    const std::size_t distance = editDistance(setting, known);
    if (distance >= least) continue;
    least = distance;
    nearest = std::move(known);
  }
  return nearest;
}

}  // namespace lockkeeper::poco
