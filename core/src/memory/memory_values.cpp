#include <condition_variable>
#include <map>
#include <stdexcept>
#include <utility>

#include "lockkeeper/base/key.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/process_mutex.h"
#include "lockkeeper/store/value_store.h"

namespace lockkeeper {

namespace {
constexpr std::chrono::milliseconds longestTtl = std::chrono::hours{24 * 366};
}

void checkValue(std::string_view key, std::string_view value, std::chrono::milliseconds ttl) {
  checkKey(key);
  if (value.size() > maxValueBytes) {
    throw std::invalid_argument("the value has " + std::to_string(value.size()) +
                                " bytes: up to 1 MiB is allowed");
  }
  checkDuration("the value's ttl", ttl, std::chrono::milliseconds{1}, longestTtl);
}

struct MemoryValues::State {
  using Ends = std::multimap<Instant, std::string>;
  struct Entry {
    std::string value;
    Ends::iterator end;
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  static std::size_t bytesOf(const Entries::value_type& entry) {
    return entry.first.size() + entry.second.value.size();
  }

  void remove(Entries::iterator found) {
    bytes -= bytesOf(*found);
    ends.erase(found->second.end);
    entries.erase(found);
  }

  void dropEnded() {
    const Instant now = clock->now();
    while (!ends.empty() && ends.begin()->first <= now) remove(entries.find(ends.begin()->second));
  }

  void insert(std::string_view key, std::string_view value, std::chrono::milliseconds ttl) {
    const auto old = entries.find(key);
    const std::size_t freed = old == entries.end() ? 0 : bytesOf(*old);
    if (bytes - freed + key.size() + value.size() > mostBytes) {
      throw StoreUnavailable("the values in memory have reached " + std::to_string(mostBytes) + " bytes");
    }
    // All memory before anything is changed.
    Ends end;
    end.emplace(saturatingAdd(clock->now(), ttl), key);
    Entries entry;
    entry.emplace(key, Entry{std::string(value), {}});
    if (old != entries.end()) remove(old);
    const auto added = entries.insert(entry.extract(entry.begin())).position;
    added->second.end = ends.insert(end.extract(end.begin()));
    bytes += bytesOf(*added);
    written.notify_all();
  }

  std::optional<std::string> find(std::string_view key) {
    dropEnded();
    const auto found = entries.find(key);
    return found == entries.end() ? std::nullopt : std::optional(found->second.value);
  }

  const std::shared_ptr<Clock> clock;
  const std::size_t mostBytes;
  detail::ProcessMutex mutex{};
  std::condition_variable written{};  // a value
  Entries entries{};
  Ends ends{};
  std::size_t bytes = 0;
};

MemoryValues::MemoryValues(std::shared_ptr<Clock> clock, std::size_t mostBytes)
    : state_(new State{.clock = std::move(clock), .mostBytes = mostBytes}) {}

MemoryValues::~MemoryValues() {
  // Another thread of the parent may have been changing it: leaking it is right.
  if (state_->mutex.inherited()) static_cast<void>(state_.release());
}

std::optional<std::string> MemoryValues::get(std::string_view key, Instant /*deadline*/) {
  checkKey(key);
  const auto held = state_->mutex.lock();
  return state_->find(key);
}

std::optional<std::string> MemoryValues::await(std::string_view key, Instant until,
                                               const std::stop_token& stop, Instant /*deadline*/) {
  checkKey(key);
  const std::stop_callback onStop(stop, [&] {
    if (state_->mutex.inherited()) return;  // the one who waits is in the parent
    const auto held = state_->mutex.lock();
    state_->written.notify_all();
  });
  auto held = state_->mutex.lock();
  while (true) {
    auto value = state_->find(key);
    if (value || stop.stop_requested() || state_->clock->now() >= until) return value;
    state_->clock->wait(held, state_->written, until);
  }
}

void MemoryValues::put(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                       Instant /*deadline*/) {
  checkValue(key, value, ttl);
  const auto held = state_->mutex.lock();
  state_->dropEnded();
  state_->insert(key, value, ttl);
}

bool MemoryValues::add(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                       Instant /*deadline*/) {
  checkValue(key, value, ttl);
  const auto held = state_->mutex.lock();
  state_->dropEnded();
  if (state_->entries.contains(key)) return false;
  state_->insert(key, value, ttl);
  return true;
}

bool MemoryValues::erase(std::string_view key, Instant /*deadline*/) {
  checkKey(key);
  const auto held = state_->mutex.lock();
  state_->dropEnded();
  const auto found = state_->entries.find(key);
  if (found == state_->entries.end()) return false;
  state_->remove(found);
  return true;
}

}  // namespace lockkeeper
