#include "inspect/held_keys.h"

#include <algorithm>
#include <chrono>

#include "commands.h"
#include "lockkeeper/driver/capabilities.h"
#include "lockkeeper/driver/key.h"
#include "lockkeeper/error.h"
#include "shown.h"

namespace lockkeeper::cli {
namespace {

constexpr std::chrono::minutes listBound{1};

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

HeldKeys::HeldKeys(const Settings& settings, const std::string& prefix)
    : driver_(openListable(settings)),
      prefix_(settings.fullKey(prefix)),
      hidden_(settings.fullKey("").size()) {}

WatchedKeys::Locks HeldKeys::look() const {
  WatchedKeys::Locks found;
  const auto collect = [&](std::string_view key, const Holder& holder) {
    found.emplace_back(key.substr(hidden_), holder);
    return true;
  };
  capability<Browsable>(*driver_)->list(prefix_, collect, saturatingAdd(systemClock()->now(), listBound));
  const auto byKey = [](const auto& one, const auto& other) { return one.first < other.first; };
  std::ranges::sort(found, byKey);
  return found;
}

}  // namespace lockkeeper::cli
