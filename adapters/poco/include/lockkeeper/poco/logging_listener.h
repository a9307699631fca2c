#pragma once

#include <memory>

#include "lockkeeper/listener.h"
#include "lockkeeper/poco/export.h"

namespace Poco {
class Logger;
}

namespace lockkeeper::poco {

/// Writes what locks and limits do to a Poco logger. docs/adapters.md says which event has which level. A key
/// is shown as `quoted()` does; texts are one line of bounded length; there is no token and no password in
/// any of them. An event whose level is off costs one comparison. What the logger throws is dropped.
///
/// The channel behind the logger is written to by threads that hold or renew locks: take an AsyncChannel when
/// it may be slow. Thread-safe.
class LOCKKEEPER_POCO_EXPORT LoggingListener final : public Listener {
 public:
  /// The logger need not outlive this object.
  explicit LoggingListener(Poco::Logger& logger);
  ~LoggingListener() override;

  void acquired(std::string_view key, std::chrono::nanoseconds waited, std::optional<Fence> fence) override;
  void timedOut(std::string_view key, std::chrono::nanoseconds waited) override;
  void gaveUp(std::string_view key, ErrorCode why, std::chrono::nanoseconds waited) override;
  void renewed(std::string_view key) override;
  void suspect(std::string_view key, std::chrono::nanoseconds remaining) override;
  void lost(std::string_view key, LossReason reason) override;
  void released(std::string_view key, std::chrono::nanoseconds held) override;
  void refused(std::string_view key, std::string_view policy, std::chrono::microseconds retryAfter) override;
  void storeFailed(std::string_view key, ErrorCode code, std::string_view message) override;
  void nodeAsked(std::string_view node, NodeOutcome outcome, std::chrono::nanoseconds latency) override;
  void noted(std::string_view store, std::string_view message) override;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper::poco
