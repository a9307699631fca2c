#include "inspect/watched_keys.h"

#include <algorithm>
#include <utility>

namespace lockkeeper::cli {
namespace {

// Who watches for days sees keys that are used once.
constexpr std::size_t mostFreed = 100'000;

bool sameGrant(const Holder& one, const Holder& other) {
  return one.owner == other.owner && one.fence == other.fence && one.grantId == other.grantId;
}

}  // namespace

std::vector<WatchedKeys::Change> WatchedKeys::look(const Locks& locks, Instant now) {
  std::vector<Change> changes;
  std::map<std::string, Key, std::less<>> former = std::exchange(keys_, {});
  for (const auto& [name, holder] : locks) {
    const auto before = former.find(name);
    Key key{.name = name, .holder = holder, .since = now, .sinceBefore = first_, .turns = 1};
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
        keys_.emplace(name, std::move(key));
        continue;
      }
      kind = Kind::passed;
    } else if (const auto freed = turns_.find(name); freed != turns_.end()) {
      key.turns += freed->second;
      turns_.erase(freed);
    }
    changes.push_back({kind, key});
    keys_.emplace(name, std::move(key));
  }
  if (turns_.size() + former.size() > mostFreed) turns_.clear();
  for (auto& [name, key] : former) {
    turns_[name] = key.turns;
    changes.push_back({Kind::freed, std::move(key)});
  }
  first_ = false;
  std::ranges::sort(changes, {}, [](const Change& each) { return each.key.name; });
  return changes;
}

std::vector<WatchedKeys::Key> WatchedKeys::held() const {
  std::vector<Key> all;
  all.reserve(keys_.size());
  for (const auto& [name, key] : keys_) all.push_back(key);
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
