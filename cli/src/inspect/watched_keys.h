#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockkeeper/driver/clock.h"
#include "lockkeeper/driver/driver.h"

namespace lockkeeper::cli {

/// What was seen of keys by looking again and again. A grant that came and went between two looks was not.
class WatchedKeys {
 public:
  /// What a look has found of one holder.
  struct Lock {
    std::string name;
    Holder holder{};
    std::optional<std::size_t> waiting{};  ///< How many wait for the key; empty: the store does not tell.
  };
  struct Key {
    std::string name;
    Holder holder{};
    Instant since{};                       ///< When this grant was seen first.
    bool sinceBefore = false;              ///< It was there at the first look, and may be older.
    std::size_t turns = 0;                 ///< How many grants of the key were seen.
    std::optional<std::size_t> waiting{};  ///< As in Lock.
  };
  enum class Kind {
    held,    ///< At the first look.
    taken,   ///< It was free.
    passed,  ///< To another holder, or to the same one again.
    freed,
  };
  struct Change {
    Kind kind;
    Key key;  ///< When freed, as it was.
  };
  using Locks = std::vector<Lock>;

  /// Notes all that is held now, and returns what has changed, by key. Of a key that is shared, each holder
  /// is noted for itself: what it has is taken and freed, and passed to nobody.
  std::vector<Change> look(const Locks& locks, Instant now);

  /// Those that are held, by key; a key that is shared once for each holder.
  std::vector<Key> held() const;

 private:
  /// The name, and of a share its grant.
  using Id = std::pair<std::string, std::string>;
  static Id idOf(const std::string& name, const Holder& holder);

  std::map<Id, Key> keys_;
  std::map<std::string, std::size_t, std::less<>> turns_;  // of those that were freed
  bool first_ = true;
};

std::string_view toString(WatchedKeys::Kind kind);

}  // namespace lockkeeper::cli
