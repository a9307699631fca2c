#include "inspect/held_keys.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "commands.h"
#include "lockkeeper/driver/capabilities.h"
#include "lockkeeper/driver/key.h"
#include "lockkeeper/error.h"
#include "shown.h"

namespace lockkeeper::cli {
namespace {

constexpr std::chrono::minutes listBound{1};

constexpr const char* wholeKey = "all";

std::shared_ptr<LockDriver> openListable(const Settings& settings) {
  checkNamespace(settings.manager.keyNamespace);
  auto driver = openStore(settings);
  if (capability<Browsable>(*driver) == nullptr) throw ConfigError("this store cannot list its locks");
  return driver;
}

}  // namespace

std::string shownRemaining(const Holder& holder) {
  return holder.remaining ? shownLength(*holder.remaining) : "for ever";
}

std::string shownOwner(const Holder& holder) { return holder.owner.empty() ? "-" : shown(holder.owner); }

std::string shownFence(const Holder& holder) { return holder.fence ? std::to_string(*holder.fence) : "-"; }

std::string shownShare(const Holder& holder) {
  if (!holder.share) return wholeKey;
  if (*holder.share == readerShare) return "reader";
  if (*holder.share == upgradeableShare) return "upgradeable reader";
  if (*holder.share == restOfUpgradeable) return "writer";
  return std::to_string(holder.share->weight) + " of " + std::to_string(holder.share->limit);
}

void hideShares(std::vector<std::vector<std::string>>& rows) {
  const auto isWhole = [](const std::vector<std::string>& row) { return row.back() == wholeKey; };
  if (!std::all_of(rows.begin() + 1, rows.end(), isWhole)) return;
  for (auto& row : rows) row.pop_back();
}

std::vector<Holder> holdersOf(LockDriver& driver, std::string_view key, std::chrono::nanoseconds bound) {
  const auto deadline = [&] { return saturatingAdd(systemClock()->now(), bound); };
  const auto holder = driver.holder(key, deadline());
  if (!holder) return {};
  auto* const permits = capability<Permits>(driver);
  if (!holder->share || permits == nullptr) return {*holder};
  return permits->shareHolders(key, deadline());
}

HeldKeys::HeldKeys(const Settings& settings, const std::string& prefix)
    : driver_(openListable(settings)),
      prefix_(settings.fullKey(prefix)),
      hidden_(settings.fullKey("").size()) {}

WatchedKeys::Locks HeldKeys::look() const {
  WatchedKeys::Locks found;
  std::vector<std::string> shared;
  const auto collect = [&](std::string_view key, const Holder& holder) {
    if (holder.share) {
      shared.emplace_back(key);
    } else {
      found.emplace_back(key.substr(hidden_), holder);
    }
    return true;
  };
  capability<Browsable>(*driver_)->list(prefix_, collect, saturatingAdd(systemClock()->now(), listBound));
  for (const std::string& key : shared) {
    for (Holder& each : holdersOf(*driver_, key, listBound))
      found.emplace_back(key.substr(hidden_), std::move(each));
  }
  std::ranges::stable_sort(found, {}, &WatchedKeys::Locks::value_type::first);
  return found;
}

}  // namespace lockkeeper::cli
