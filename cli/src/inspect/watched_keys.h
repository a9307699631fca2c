#pragma once

#include <cstddef>
#include <map>
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
  struct Key {
    std::string name;
    Holder holder{};
    Instant since{};           ///< When this grant was seen first.
    bool sinceBefore = false;  ///< It was there at the first look, and may be older.
    std::size_t turns = 0;     ///< How many grants of the key were seen.
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
  using Locks = std::vector<std::pair<std::string, Holder>>;

  /// Notes all that is held now, and returns what has changed, by key.
  std::vector<Change> look(const Locks& locks, Instant now);

  /// Those that are held, by key.
  std::vector<Key> held() const;

 private:
  std::map<std::string, Key, std::less<>> keys_;
  std::map<std::string, std::size_t, std::less<>> turns_;  // of those that were freed
  bool first_ = true;
};

std::string_view toString(WatchedKeys::Kind kind);

}  // namespace lockkeeper::cli
