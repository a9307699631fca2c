#include <array>

#include "config/setting_row.h"

namespace lockkeeper::poco {
namespace {

LimitedRoute& limited(Settings& settings, const Names& names) {
  return named(settings.http.limits.routes, names.front());
}
LockedRoute& locked(Settings& settings, const Names& names) {
  return named(settings.http.locks.routes, names.front());
}
IdempotentRoute& idempotent(Settings& settings, const Names& names) {
  return named(settings.http.idempotency.routes, names.front());
}

constexpr std::string_view matchText = "METHOD /path";

constexpr std::array httpSettings{
    // Before the other settings of routes: a limit may be called "match".
    row(
        "lockkeeper.http.routes.*.limits.*", "what it counts by", "(one is required)",
        "A limit that these requests must stay within, such as `json phone`, `address` or `all`.",
        [](Settings& s, const Names& names) -> auto& { return limited(s, names).limits[names.back()]; }),
    row(
        "lockkeeper.http.routes.*.match", matchText, "(required)",
        "Which requests `RateLimitFilter` limits: see [http-limits.md](http-limits.md).",
        [](Settings& s, const Names& names) -> auto& { return limited(s, names).match; }),
    row(
        "lockkeeper.http.routes.*.dryRun", switchText, "(lockkeeper.http.dryRun)",
        "Whether the route only counts and reports, and refuses nothing.",
        [](Settings& s, const Names& names) -> auto& { return limited(s, names).dryRun; }),
    row(
        "lockkeeper.http.dryRun", switchText, "", "The same for all routes that do not set it.",
        [](Settings& s, const Names&) -> auto& { return s.http.limits.dryRun; }),
    row(
        "lockkeeper.http.trustedProxies", "addresses, networks", "(none)",
        "Whose `X-Forwarded-For` is believed, such as `10.0.0.0/8, ::1`.",
        [](Settings& s, const Names&) -> auto& { return s.http.clients.trustedProxies; }),
    row(
        "lockkeeper.http.ipv6Prefix", "bits", "",
        "How many bits of an IPv6 address identify one client (1 to 128).",
        [](Settings& s, const Names&) -> auto& { return s.http.clients.ipv6Prefix; }),
    row(
        "lockkeeper.http.maxBody", bytesText, "",
        "The longest body on routes that count by a JSON field (1 to 16777216).",
        [](Settings& s, const Names&) -> auto& { return s.http.limits.maxBody; }),
    row(
        "lockkeeper.http.bodyTimeout", durationText, "",
        "How long such a body may take to arrive before 408 (10ms to 1h).",
        [](Settings& s, const Names&) -> auto& { return s.http.limits.bodyTimeout; }),

    row(
        "lockkeeper.http.locks.*.match", matchText, "(required)",
        "Which requests `RequestLocks` serves one at a time: see [http-locks.md](http-locks.md).",
        [](Settings& s, const Names& names) -> auto& { return locked(s, names).match; }),
    row(
        "lockkeeper.http.locks.*.by", "what the key is", "(required)",
        "What the key is made of, such as `path id`, `user` or `all`.",
        [](Settings& s, const Names& names) -> auto& { return locked(s, names).by; }),
    row(
        "lockkeeper.http.locks.*.scope", "text", "(the route's name)",
        "The first part of the key; routes with the same scope share their locks.",
        [](Settings& s, const Names& names) -> auto& { return locked(s, names).scope; }),
    row(
        "lockkeeper.http.locks.*.ttl", durationText, "(lockkeeper.lock.ttl)",
        "The lease, which is renewed while the handler runs.",
        [](Settings& s, const Names& names) -> auto& { return locked(s, names).lock.ttl; }),
    row(
        "lockkeeper.http.locks.*.waitFor", durationText, "(lockkeeper.lock.waitFor)",
        "How long a request waits for a busy lock before 423.",
        [](Settings& s, const Names& names) -> auto& { return locked(s, names).lock.waitFor; }),
    row(
        "lockkeeper.http.locks.*.maxHold", durationText, "(lockkeeper.lock.maxHold)",
        "The longest that a request may hold its lock; then it is lost.",
        [](Settings& s, const Names& names) -> auto& { return locked(s, names).lock.maxHold; }),
    row(
        "lockkeeper.http.maxWaiting", numberText, "(half of the server's threads)",
        "How many requests of this process may wait for locks at a time; others get 423 at once (0 to "
        "10000).",
        [](Settings& s, const Names&) -> auto& { return s.http.locks.maxWaiting; }),

    row(
        "lockkeeper.http.idempotency.store", uriText, "(required for routes)",
        "Where answers are kept; with `${lockkeeper.store}` they share the memory of the locks' store.",
        [](Settings& s, const Names&) -> auto& { return s.http.answersStore; }),
    row(
        "lockkeeper.http.idempotency.routes.*.match", matchText, "(required)",
        "Which requests `Idempotency` runs once for each key: see [idempotency.md](idempotency.md).",
        [](Settings& s, const Names& names) -> auto& { return idempotent(s, names).match; }),
    row(
        "lockkeeper.http.idempotency.routes.*.client", "what tells clients apart", "",
        "Such as `user`, `address` or `header NAME`: no client gets another client's answer, except with "
        "`all`.",
        [](Settings& s, const Names& names) -> auto& { return idempotent(s, names).client; }),
    row(
        "lockkeeper.http.idempotency.routes.*.required", switchText, "",
        "Whether a request without a key, or without what tells clients apart, is refused.",
        [](Settings& s, const Names& names) -> auto& { return idempotent(s, names).required; }),
    row(
        "lockkeeper.http.idempotency.routes.*.keepFor", durationText, "", "How long answers are kept.",
        [](Settings& s, const Names& names) -> auto& { return idempotent(s, names).keepFor; }),
    row(
        "lockkeeper.http.idempotency.routes.*.ttl", durationText, "",
        "How long a request counts as in flight after its server has died.",
        [](Settings& s, const Names& names) -> auto& { return idempotent(s, names).ttl; }),
    row(
        "lockkeeper.http.idempotency.maxBody", bytesText, "",
        "The longest request body; it is read into memory (1 to 16777216).",
        [](Settings& s, const Names&) -> auto& { return s.http.idempotency.maxBody; }),
    row(
        "lockkeeper.http.idempotency.bodyTimeout", durationText, "",
        "How long a body may take to arrive before 408 (10ms to 1h).",
        [](Settings& s, const Names&) -> auto& { return s.http.idempotency.bodyTimeout; }),
    row(
        "lockkeeper.http.idempotency.maxAnswer", bytesText, "",
        "The longest answer that is kept whole (1024 to 1048576).",
        [](Settings& s, const Names&) -> auto& { return s.http.idempotency.maxAnswer; }),
    row(
        "lockkeeper.http.idempotency.maxStored", bytesText, "",
        "How many bytes of whole answers a process keeps in the store; of further ones, only the status.",
        [](Settings& s, const Names&) -> auto& { return s.http.idempotency.maxStored; }),
    row(
        "lockkeeper.http.idempotency.maxStoredPerClient", bytesText, "",
        "The same for each client, so that one of them does not use up all of it.",
        [](Settings& s, const Names&) -> auto& { return s.http.idempotency.maxStoredPerClient; }),
    row(
        "lockkeeper.http.idempotency.perHost", switchText, "",
        "Whether the same key on two hosts, as the requests name them, is two keys.",
        [](Settings& s, const Names&) -> auto& { return s.http.idempotency.perHost; }),
};

}  // namespace

std::span<const SettingRow> httpRows() { return httpSettings; }

}  // namespace lockkeeper::poco
