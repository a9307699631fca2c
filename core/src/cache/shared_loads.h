#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/lock.h"

namespace lockkeeper::detail {

/// The loads of this process that are under way, so that callers who want the same key share one. Nobody
/// shares a load that may have read what was there before his call: one that began earlier, unless it has
/// held the key's lock ever since, which keeps every invalidate() from ending meanwhile. Thread-safe.
class SharedLoads {
 public:
  /// A number in the order in which callers came and loads began; 0 for none.
  using Order = std::uint64_t;

  /// One load, and what came of it. Its members are guarded by SharedLoads until await() has returned true.
  struct Load {
    const std::thread::id leader = std::this_thread::get_id();
    std::condition_variable ended;
    Order begun = 0;             ///< When it began to read the value that it serves.
    const Lock* lock = nullptr;  ///< The lock under which it has read that.
    bool done = false;
    std::optional<std::string> value{};
    std::exception_ptr failure{};  ///< Instead of a value.
    bool outOfTime = false;        ///< The leader's own time was over. It writes this before end().
  };

  enum class Part {
    leads,   ///< The caller must load, and end() the load.
    shares,  ///< What comes of the load is the caller's, too.
    waits,   ///< The load may be too old: once it has ended, join again.
  };
  struct Joined {
    std::shared_ptr<Load> load;
    Part part;
    Order cameBefore = 0;  ///< When its sharer came, if it had not begun by then.

    /// Whether the load, which has ended, read its value before the caller who shares it came.
    bool isTooOld() const { return load->begun != 0 && load->begun < cameBefore; }
  };

  explicit SharedLoads(std::shared_ptr<Clock> clock) : clock_(std::move(clock)) {}

  /// `came` is 0 in a caller's first call; the call writes it for the caller's next ones.
  Joined join(std::string_view key, Order& came);

  /// The leader is about to read the value to serve, under `lock`, which must live until end(), or null.
  void begin(Load& load, const Lock* lock);

  /// For a value that is read before it is known whether it can be served: mark() before the read, and
  /// begun() with that mark if the value was found.
  Order mark();
  void begun(Load& load, Order marked);

  void end(std::string_view key, const std::shared_ptr<Load>& load, std::optional<std::string> value,
           std::exception_ptr failure);

  /// True when it has ended; false when it has not until `until`.
  bool await(Load& load, Instant until);

 private:
  Part partOf(const Load& load, Order came) const;

  const std::shared_ptr<Clock> clock_;
  std::mutex mutex_;
  Order latest_ = 0;
  std::map<std::string, std::shared_ptr<Load>, std::less<>> loads_;
};

}  // namespace lockkeeper::detail
