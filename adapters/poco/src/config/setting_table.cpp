#include "config/setting_table.h"

#include <array>
#include <chrono>
#include <string>
#include <utility>

#include "config/setting.h"
#include "lockkeeper/driver/key.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"

namespace lockkeeper::poco {
namespace {

std::chrono::milliseconds duration(const GivenValue& given) {
  return parseDuration(given.setting, given.text);
}

std::string name(const GivenValue& given) {
  checkSettingName(given.setting, given.text);
  return given.text;
}

Renew renewal(const GivenValue& given) {
  if (given.text == "automatic") return Renew::automatic;
  if (given.text == "manual") return Renew::manual;
  throw ConfigError(given.setting + " is " + quoted(given.text) + ": automatic and manual are allowed");
}

migration::Rules rules(const GivenValue& given) {
  try {
    return migration::Rules::parse(given.text);
  } catch (const ConfigError& error) {
    throw ConfigError(given.setting + ": " + error.what());
  }
}

/// The name and the setting of lockkeeper.<section>.<name>.<setting>.
std::pair<std::string, std::string> lastTwo(const std::string& setting) {
  const auto last = setting.rfind('.');
  const auto before = setting.rfind('.', last - 1);
  return {setting.substr(before + 1, last - before - 1), setting.substr(last + 1)};
}

/// RatePolicy::parse() reads them, all of a limit together.
void limit(Settings& settings, const GivenValue& given) {
  const auto [name, setting] = lastTwo(given.setting);
  settings.limits[name][setting] = given.text;
}

TaskOptions& task(Settings& settings, const GivenValue& given) {
  const std::string name = lastTwo(given.setting).first;
  TaskOptions& options = settings.tasks[name];
  options.name = name;
  return options;
}

constexpr std::string_view durationText = "duration";
constexpr std::string_view uriText = "URI";
constexpr std::string_view numberText = "number";
constexpr std::string_view nameText = "name";
constexpr std::string_view switchText = "on, off";

constexpr std::array rows{
    SettingRow{
        "lockkeeper.store", uriText, "(required)",
        "Where locks and limits are: `memory:` (this process alone), `redis://host:6379/0` or another store.",
        [](Settings& s, const GivenValue& given) { s.store = given.text; }},
    SettingRow{"lockkeeper.namespace", nameText, "(none)",
               "Put before each key with a ':', so that applications share a store.",
               [](Settings& s, const GivenValue& given) { s.manager.keyNamespace = name(given); }},

    SettingRow{"lockkeeper.lock.ttl", durationText, "30s",
               "How long the store keeps the lock of a holder that has gone silent (10ms to 24h).",
               [](Settings& s, const GivenValue& given) { s.manager.lock.ttl = duration(given); }},
    SettingRow{"lockkeeper.lock.waitFor", durationText, "(tryLock: 0s, lock: no bound)",
               "How long to wait for a busy key or a store that is down (at most 24h).",
               [](Settings& s, const GivenValue& given) { s.manager.lock.waitFor = duration(given); }},
    SettingRow{"lockkeeper.lock.renew", "automatic, manual", "automatic",
               "Whether leases are renewed until the lock is released, or end after `ttl`.",
               [](Settings& s, const GivenValue& given) { s.manager.lock.renew = renewal(given); }},
    SettingRow{"lockkeeper.lock.maxHold", durationText, "(no bound)",
               "The longest that a lock may be held; then it is lost.",
               [](Settings& s, const GivenValue& given) { s.manager.lock.maxHold = duration(given); }},
    SettingRow{"lockkeeper.lock.safetyMargin", durationText, "(a tenth of ttl)",
               "How long before its lease ends a lock says that it is lost.",
               [](Settings& s, const GivenValue& given) { s.manager.lock.safetyMargin = duration(given); }},
    SettingRow{"lockkeeper.lock.owner", "text", "(host:pid)",
               "The label under which others see who holds a lock.",
               [](Settings& s, const GivenValue& given) { s.manager.owner = given.text; }},
    SettingRow{"lockkeeper.lock.operationTimeout", durationText, "2s",
               "How long one attempt at the store may take (1ms to 1h).",
               [](Settings& s, const GivenValue& given) { s.manager.operationTimeout = duration(given); }},
    SettingRow{"lockkeeper.lock.backoffInitial", durationText, "5ms",
               "The first wait between attempts at a busy key; each further one is twice as long.",
               [](Settings& s, const GivenValue& given) { s.manager.backoffInitial = duration(given); }},
    SettingRow{"lockkeeper.lock.backoffCap", durationText, "250ms", "The longest wait between attempts.",
               [](Settings& s, const GivenValue& given) { s.manager.backoffCap = duration(given); }},

    SettingRow{"lockkeeper.limiter.store", uriText, "(lockkeeper.store)",
               "Where limits are, if elsewhere than locks.",
               [](Settings& s, const GivenValue& given) { s.limiterStore = given.text; }},
    SettingRow{"lockkeeper.limiter.operationTimeout", durationText, "500ms",
               "How long one question to the store may take before `outage` answers (1ms to 1h).",
               [](Settings& s, const GivenValue& given) { s.limiter.operationTimeout = duration(given); }},

    SettingRow{"lockkeeper.limits.*.rate", "rate", "(required)",
               "So many units in so much time: `2/s`, `100/min`, `1/day`, `5/30s`.", limit},
    SettingRow{"lockkeeper.limits.*.burst", numberText, "(the rate's count)",
               "What a bucket or queue holds; windows have none.", limit},
    SettingRow{"lockkeeper.limits.*.kind",
               "token-bucket, leaky-meter, leaky-queue, sliding-window, fixed-window", "token-bucket",
               "The algorithm: see [rate-limiting.md](rate-limiting.md).", limit},
    SettingRow{"lockkeeper.limits.*.outage", "closed, open, local", "closed",
               "What is answered while the store is down: refuse all, allow all, or this process's share.",
               limit},
    SettingRow{"lockkeeper.limits.*.processes", numberText, "1",
               "How many processes share the limit, for `outage = local`.", limit},
    SettingRow{"lockkeeper.limits.*.prefetch", numberText, "0",
               "How many units a process takes from the store at a time; 0 for none.", limit},
    SettingRow{"lockkeeper.limits.*.prefetchIdle", durationText, "1s",
               "After which time units that were not handed out go back to the store.", limit},

    SettingRow{"lockkeeper.tasks.*.atLeast", durationText, "0s",
               "How long after a run has begun no other one begins (at most 24h): see "
               "[adapters.md](adapters.md).",
               [](Settings& s, const GivenValue& given) { task(s, given).atLeast = duration(given); }},
    SettingRow{"lockkeeper.tasks.*.atMost", durationText, "10m",
               "How long a run may take; then it is told to stop (10ms and `atLeast` to 8784h).",
               [](Settings& s, const GivenValue& given) { task(s, given).atMost = duration(given); }},
    SettingRow{"lockkeeper.tasks.*.ttl", durationText, "30s",
               "How soon after the death of the process that runs it another one may (10ms to 24h).",
               [](Settings& s, const GivenValue& given) { task(s, given).ttl = duration(given); }},

    SettingRow{
        "lockkeeper.migration.from", uriText, "(no migration)",
        "The old store, when locks move from it to `lockkeeper.store`: see [migrating.md](migrating.md).",
        [](Settings& s, const GivenValue& given) { s.migration.from = given.text; }},
    SettingRow{"lockkeeper.migration.phase", "legacy, both, modern, or rules", "legacy",
               "Where the process wants to be until rules are written with `lockkeeper migrate advance`.",
               [](Settings& s, const GivenValue& given) { s.migration.options.rules = rules(given); }},
    SettingRow{"lockkeeper.migration.board", uriText, "(lockkeeper.store)",
               "The store that keeps the board, where the new one cannot.",
               [](Settings& s, const GivenValue& given) { s.migration.board = given.text; }},
    SettingRow{"lockkeeper.migration.name", nameText, "migration",
               "The board's name: one for all processes that share the keys.",
               [](Settings& s, const GivenValue& given) { s.migration.options.name = name(given); }},
    SettingRow{"lockkeeper.migration.heartbeat", durationText, "1s",
               "How often the process looks at the board, and thus how soon it follows (10ms to 1m).",
               [](Settings& s, const GivenValue& given) { s.migration.options.heartbeat = duration(given); }},
    SettingRow{"lockkeeper.migration.lease", durationText, "15s",
               "How long the process goes on in one store while the board is out of reach (at most 10m).",
               [](Settings& s, const GivenValue& given) { s.migration.options.lease = duration(given); }},
    SettingRow{"lockkeeper.migration.maxTtl", durationText, "5m",
               "The longest ttl that a lock may have meanwhile (10ms to 24h).",
               [](Settings& s, const GivenValue& given) { s.migration.options.maxTtl = duration(given); }},
    SettingRow{
        "lockkeeper.migration.observation", durationText, "10m",
        "How long nobody else must have been seen in the old store before keys leave it (at most 24h).",
        [](Settings& s, const GivenValue& given) { s.migration.options.observation = duration(given); }},

    SettingRow{"lockkeeper.http.routes.*.match", "METHOD /path", "(required)",
               "Which requests `RateLimitFilter` limits: see [adapters.md](adapters.md).", nullptr},
    SettingRow{"lockkeeper.http.routes.*.limits.*", "what it counts by", "(one is required)",
               "A limit that these requests must keep, such as `json phone`, `address` or `all`.", nullptr},
    SettingRow{"lockkeeper.http.routes.*.dryRun", switchText, "(lockkeeper.http.dryRun)",
               "Whether the route only counts and reports, and refuses nothing.", nullptr},
    SettingRow{"lockkeeper.http.dryRun", switchText, "off", "The same for all routes that do not say it.",
               nullptr},
    SettingRow{"lockkeeper.http.trustedProxies", "addresses, networks", "(none)",
               "Whose `X-Forwarded-For` is believed, such as `10.0.0.0/8, ::1`.", nullptr},
    SettingRow{"lockkeeper.http.ipv6Prefix", "bits", "64",
               "How much of an IPv6 address is one client (1 to 128).", nullptr},
    SettingRow{"lockkeeper.http.maxBody", "bytes", "16384",
               "The longest body on routes that count by a JSON field (1 to 16777216).", nullptr},

    SettingRow{"lockkeeper.http.locks.*.match", "METHOD /path", "(required)",
               "Which requests `RequestLocks` serves one at a time: see [adapters.md](adapters.md).",
               nullptr},
    SettingRow{"lockkeeper.http.locks.*.by", "what the key is", "(required)",
               "What the key is made of, such as `path id`, `user` or `all`.", nullptr},
    SettingRow{"lockkeeper.http.locks.*.scope", "text", "(the route's name)",
               "The first part of the key; routes with one scope share their locks.", nullptr},
    SettingRow{"lockkeeper.http.locks.*.ttl", durationText, "(lockkeeper.lock.ttl)",
               "The lease, which is renewed while the handler runs.", nullptr},
    SettingRow{"lockkeeper.http.locks.*.waitFor", durationText, "(lockkeeper.lock.waitFor)",
               "How long a request waits for a busy lock before 423.", nullptr},
    SettingRow{"lockkeeper.http.locks.*.maxHold", durationText, "(lockkeeper.lock.maxHold)",
               "The longest that a request may hold its lock; then it is lost.", nullptr},

    SettingRow{"lockkeeper.http.idempotency.routes.*.match", "METHOD /path", "(required)",
               "Which requests `Idempotency` runs once for each key: see [adapters.md](adapters.md).",
               nullptr},
    SettingRow{"lockkeeper.http.idempotency.routes.*.client", "what tells clients apart", "user",
               "Such as `user`, `address`, `header NAME` or `all`: nobody gets another client's answer.",
               nullptr},
    SettingRow{"lockkeeper.http.idempotency.routes.*.required", switchText, "on",
               "Whether a request without a key is refused.", nullptr},
    SettingRow{"lockkeeper.http.idempotency.routes.*.keepFor", durationText, "24h",
               "How long answers are kept.", nullptr},
    SettingRow{"lockkeeper.http.idempotency.routes.*.ttl", durationText, "30s",
               "How long a request counts as in flight after its server has died.", nullptr},
    SettingRow{"lockkeeper.http.idempotency.methods", "methods", "POST, PATCH, PUT, DELETE",
               "The methods that are kept; others pass.", nullptr},
    SettingRow{"lockkeeper.http.idempotency.maxBody", "bytes", "1048576",
               "The longest request body; it is read into memory (1 to 16777216).", nullptr},
    SettingRow{"lockkeeper.http.idempotency.maxAnswer", "bytes", "1048576",
               "The longest answer that is kept whole (1024 to 1048576).", nullptr},
};

}  // namespace

std::span<const SettingRow> settingTable() { return rows; }

}  // namespace lockkeeper::poco
