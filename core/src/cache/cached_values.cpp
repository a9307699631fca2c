#include "cache/cached_values.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "lockkeeper/base/key.h"

namespace lockkeeper::detail {

namespace {

using std::chrono::milliseconds;

// The first byte of what is stored: a value follows, or the loader had none.
constexpr char someValue = '+';
constexpr char noValue = '-';

CachedValues::Found decode(const std::optional<std::string>& stored) {
  // Anything else was not written by a CachedLoader: it counts as absent.
  if (!stored || stored->empty()) return {};
  if (stored->front() == someValue) return {.there = true, .value = stored->substr(1)};
  return {.there = *stored == std::string(1, noValue)};
}

}  // namespace

CachedValues::CachedValues(std::shared_ptr<ValueStore> store, const CacheOptions& options,
                           Environment environment)
    : store_(std::move(store)), options_(options), environment_(std::move(environment)) {
  if (!store_) throw std::invalid_argument("a CachedLoader needs a ValueStore");
  for (std::size_t part = 0; part < ValueStore::mostParts; ++part)
    health_.emplace_back(options.operationTimeout);
}

CachedValues::Entry CachedValues::entryOf(std::string_view key) const {
  checkKey(key);
  Entry entry;
  entry.key = key;
  entry.began = now();
  if (!options_.keyNamespace.empty()) entry.full.append(options_.keyNamespace).append(1, ':');
  entry.full.append(key);
  entry.fresh = entry.full + ":fresh";
  entry.stale = entry.full + ":stale";
  checkKey(entry.stale);
  return entry;
}

CachedValues::Found CachedValues::read(const Entry& entry, const std::string& name) {
  const Instant started = now();
  StoreHealth& health = health_[store_->partOf(name) % ValueStore::mostParts];
  if (!health.mayTry(started)) {
    return {.failure =
                std::make_exception_ptr(StoreUnavailable("the store of cached values does not answer"))};
  }
  try {
    Found found = decode(store_->get(name, soon()));
    health.succeeded();
    return found;
  } catch (const ForkedError&) {
    throw;
  } catch (const Error& error) {
    health.failed(error, started, now(), *environment_.random);
    environment_.tell({.kind = EventKind::attemptFailed,
                       .key = entry.full,
                       .began = started,
                       .ended = now(),
                       .error = error.code(),
                       .text = error.what()});
    return {.failure = std::current_exception()};
  }
}

CachedValues::Value CachedValues::readStale(const Entry& entry) {
  return options_.staleFor == milliseconds{0} ? Value() : read(entry, entry.stale).value;
}

void CachedValues::store(const Entry& entry, const Lock& lock, const Value& value, Instant began) {
  const Instant freshUntil = began + (value ? jittered() : options_.negativeFor);
  const std::string stored = value ? someValue + *value : std::string(1, noValue);
  // The copy first: it should not be older than the fresh one.
  storeCopy(entry, lock, value, stored, freshUntil + options_.staleFor);
  if (!put(entry.fresh, stored, freshUntil, whileHeld(lock)) &&
      (value || options_.negativeFor > milliseconds{0}))
    tell(EventKind::notStored, entry, "the load took longer than its value stays fresh");
}

// Its failure is only told: the copy may be in a part of the store that is down, and the fresh value in
// another.
void CachedValues::storeCopy(const Entry& entry, const Lock& lock, const Value& value,
                             const std::string& stored, Instant until) {
  // Half of the time, so that the other half is left for the fresh value.
  const Instant deadline = whileHeld(lock, 2);
  try {
    if (!value) {
      store_->erase(entry.stale, deadline);
    } else if (options_.staleFor > milliseconds{0}) {
      put(entry.stale, stored, until, deadline);
    }
  } catch (const ForkedError&) {
    throw;
  } catch (const Error& error) {
    tell(EventKind::notStored, entry, std::string("its copy to be served stale: ") + error.what());
  }
}

// Keeps the value until `until`. If that is past, returns false, and what was there is erased.
bool CachedValues::put(const std::string& name, const std::string& stored, Instant until, Instant deadline) {
  const auto ttl = std::chrono::floor<milliseconds>(until - now());
  if (ttl > milliseconds{0}) {
    store_->put(name, stored, ttl, deadline);
  } else {
    store_->erase(name, deadline);
  }
  return ttl > milliseconds{0};
}

Instant CachedValues::whileHeld(const Lock& lock, int parts) const {
  const auto left = lock.remaining();
  if (left <= left.zero()) throw LockLost("the load took longer than its lock was held");
  return std::min(soon(), now() + left / parts);
}

milliseconds CachedValues::jittered() const {
  const auto most = static_cast<std::uint64_t>(options_.freshFor.count()) * options_.jitterPercent / 100;
  return options_.freshFor - milliseconds(environment_.random->upTo(most));
}

void CachedValues::erase(const Entry& entry) {
  const Instant deadline = soon();
  if (options_.staleFor > milliseconds{0}) store_->erase(entry.stale, deadline);
  store_->erase(entry.fresh, deadline);
}

void CachedValues::tell(EventKind kind, const Entry& entry, std::string_view text) const {
  environment_.tell({.kind = kind, .key = entry.full, .began = entry.began, .ended = now(), .text = text});
}

}  // namespace lockkeeper::detail
