#pragma once

#include <memory>

#include "lockkeeper/listener.h"
#include "lockkeeper/poco/export.h"

namespace lockkeeper::poco {

class ActivityLog;

/// Remembers what the locks, limits and tasks of this process did in the last minutes, for a LockConsole:
///
///     auto activity = std::make_shared<RecentActivity>();
///     environment.listener = std::make_shared<ListenerGroup>(
///         std::vector<std::shared_ptr<Listener>>{environment.listener, activity});
///     LockConsole console(store, {.activity = activity});
///
/// Give it the events of the store that the console shows, and no others: keys of several stores would be
/// mixed up. Takes 6 MB at most, however many keys there are: what changed last is kept of 500 keys, and the
/// waiting time of the 200 that were waited for longest. Thread-safe.
class LOCKKEEPER_POCO_EXPORT RecentActivity final : public Listener {
 public:
  RecentActivity();
  RecentActivity(const RecentActivity&) = delete;
  RecentActivity& operator=(const RecentActivity&) = delete;
  ~RecentActivity() override;

  /// Takes a microsecond or so.
  void on(const Event& event) override;

 private:
  friend class LockConsole;

  const std::shared_ptr<ActivityLog> log_;
};

}  // namespace lockkeeper::poco
