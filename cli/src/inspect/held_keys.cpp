#include "inspect/held_keys.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "commands.h"
#include "lockkeeper/driver/capabilities.h"
#include "lockkeeper/driver/key.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/holders.h"
#include "shown.h"

namespace lockkeeper::cli {
namespace {

constexpr std::chrono::minutes longestLook{1};

// What most rows have.
constexpr const char* wholeKey = "all";
constexpr const char* nobody = "-";

std::shared_ptr<LockDriver> openListable(const Settings& settings) {
  checkNamespace(settings.manager.keyNamespace);
  auto driver = openStore(settings);
  if (capability<Browsable>(*driver) == nullptr) throw ConfigError("this store cannot list its locks");
  return driver;
}

}  // namespace

std::string shownRemaining(const Holder& holder) {
  if (holder.remaining) return shownLength(*holder.remaining);
  return holder.endless ? "for ever" : "unknown";
}

std::string shownOwner(const Holder& holder) { return holder.owner.empty() ? "-" : shown(holder.owner); }

std::string shownFence(const Holder& holder) { return holder.fence ? std::to_string(*holder.fence) : "-"; }

std::string shownShare(const std::optional<Share>& share) { return share ? shareText(*share) : wholeKey; }

std::string shownWaiting(const std::optional<std::size_t>& waiting) {
  return waiting && *waiting > 0 ? std::to_string(*waiting) : nobody;
}

void hideUsual(std::vector<std::vector<std::string>>& rows) {
  for (const auto& [heading, usual] : {std::pair{"WAITING", nobody}, {"SHARE", wholeKey}}) {
    const auto column = std::ranges::find(rows.front(), heading) - rows.front().begin();
    if (column == std::ssize(rows.front())) continue;
    const auto isUsual = [column = column, usual = usual](const auto& row) {
      return row[static_cast<std::size_t>(column)] == usual;
    };
    if (!std::all_of(rows.begin() + 1, rows.end(), isUsual)) continue;
    for (auto& row : rows) row.erase(row.begin() + column);
  }
}

HeldKeys::HeldKeys(const Settings& settings, const std::string& prefix)
    : driver_(openListable(settings)),
      prefix_(settings.fullKey(prefix)),
      hidden_(settings.fullKey("").size()) {}

std::optional<std::vector<std::vector<Waiter>>> waitersOf(LockDriver& driver,
                                                          const std::vector<std::string>& keys,
                                                          Instant deadline) {
  auto* const browsable = capability<WaiterBrowsable>(driver);
  if (browsable == nullptr) return std::nullopt;
  return browsable->waiters(keys, deadline);
}

WatchedKeys::Locks HeldKeys::look() const {
  const Instant deadline = saturatingAdd(systemClock()->now(), longestLook);
  WatchedKeys::Locks found;
  std::vector<std::string> keys;
  const auto collect = [&](std::string_view key, const Holder& holder) {
    keys.emplace_back(key);
    found.push_back({.name = std::string(key.substr(hidden_)), .holder = holder});
    return true;
  };
  capability<Browsable>(*driver_)->list(prefix_, collect, deadline);
  const auto waiters = waitersOf(*driver_, keys, deadline);
  WatchedKeys::Locks all;
  for (std::size_t index = 0; index < found.size(); ++index) {
    WatchedKeys::Lock& lock = found[index];
    if (waiters) lock.waiting = (*waiters)[index].size();
    if (!lock.holder.share) {
      all.push_back(std::move(lock));
      continue;
    }
    for (Holder& each : holdersOf(*driver_, keys[index], deadline)) {
      all.push_back({.name = lock.name, .holder = std::move(each), .waiting = lock.waiting});
    }
  }
  std::ranges::stable_sort(all, {}, &WatchedKeys::Lock::name);
  return all;
}

}  // namespace lockkeeper::cli
