#include "inspect/watched_keys.h"

#include <algorithm>
#include <utility>

#include "lockkeeper/internal/holders.h"

namespace lockkeeper::cli {
namespace {

// Who watches for days sees keys that are used once.
constexpr std::size_t mostFreed = 100'000;

}  // namespace

WatchedKeys::Id WatchedKeys::idOf(const std::string& name, const Holder& holder) {
  return {name, shareName(holder)};
}

std::vector<WatchedKeys::Change> WatchedKeys::look(const Locks& locks, Instant now) {
  std::vector<Change> changes;
  std::map<Id, Key> former = std::exchange(keys_, {});
  for (const auto& [name, holder, waiting] : locks) {
    const Id id = idOf(name, holder);
    const auto before = former.find(id);
    Key key{
        .name = name, .holder = holder, .since = now, .sinceBefore = first_, .turns = 1, .waiting = waiting};
    Kind kind = first_ ? Kind::held : Kind::taken;
    if (before != former.end()) {
      const Key& was = before->second;
      const bool same = sameGrant(was.holder, holder);
      key.turns = was.turns + (same ? 0 : 1);
      if (same) {
        key.since = was.since;
        key.sinceBefore = was.sinceBefore;
      }
      former.erase(before);
      if (same) {
        keys_.emplace(id, std::move(key));
        continue;
      }
      kind = Kind::passed;
    } else if (const auto freed = turns_.find(name); !holder.share && freed != turns_.end()) {
      key.turns += freed->second;
      turns_.erase(freed);
    }
    changes.push_back({kind, key});
    keys_.emplace(id, std::move(key));
  }
  if (turns_.size() + former.size() > mostFreed) turns_.clear();
  for (auto& [id, key] : former) {
    if (!key.holder.share) turns_[key.name] = key.turns;
    changes.push_back({Kind::freed, std::move(key)});
  }
  first_ = false;
  std::ranges::stable_sort(changes, {}, [](const Change& each) { return each.key.name; });
  return changes;
}

std::vector<WatchedKeys::Key> WatchedKeys::held() const {
  std::vector<Key> all;
  all.reserve(keys_.size());
  for (const auto& [id, key] : keys_) all.push_back(key);
  return all;
}

std::string_view toString(WatchedKeys::Kind kind) {
  switch (kind) {
    case WatchedKeys::Kind::held:
      return "held";
    case WatchedKeys::Kind::taken:
      return "taken";
    case WatchedKeys::Kind::passed:
      return "passed";
    case WatchedKeys::Kind::freed:
      return "freed";
  }
  return "";
}

}  // namespace lockkeeper::cli
