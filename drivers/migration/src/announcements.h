#pragma once

#include <atomic>
#include <string>

#include "lockkeeper/environment.h"
#include "lockkeeper/migration/migration_options.h"

namespace lockkeeper::migration {

/// What the listener is told of the migration. Used by one thread, but for stop().
class Announcements {
 public:
  Announcements(const MigrationOptions& options, const Environment& environment)
      : options_(options), environment_(environment) {}

  void note(const std::string& message) const;
  /// Once, at the start, if the process is configured for other rules than those that it follows: nobody
  /// should wait for a configuration that has no effect.
  void follows(const Rules& rules);
  /// Once for each change.
  void inForce(const Rules& rules);

  /// What the listener uses may be gone from now on. Thread-safe.
  void stop() { stopped_ = true; }

 private:
  void tell(const Event& event) const;

  const MigrationOptions& options_;
  const Environment& environment_;
  std::string inForce_;
  bool started_ = false;
  std::atomic<bool> stopped_{false};
};

}  // namespace lockkeeper::migration
