#include "inspect/held_keys.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "lockkeeper/base/key.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/holders.h"
#include "shown.h"
#include "stores.h"

namespace lockkeeper::cli {
namespace {

// What most rows have.
constexpr const char* wholeKey = "all";
constexpr const char* nobody = "-";
constexpr const char* firstTurn = "1";

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
  for (const auto& [heading, usual] :
       {std::pair{"WAITING", nobody}, {"TURNS", firstTurn}, {"SHARE", wholeKey}}) {
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
    : prefix_(settings.fullKey(prefix)), hidden_(settings.fullKey("").size()) {
  checkNamespace(settings.manager.keyNamespace);
  driver_ = openStore(settings);
}

LockListing HeldKeys::look() const {
  return listLocks(*driver_, prefix_, [] { return true; });
}

}  // namespace lockkeeper::cli
