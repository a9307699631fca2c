#pragma once

#include <memory>

#include "lockkeeper/listener.h"
#include "lockkeeper/poco/export.h"

namespace Poco {
class Logger;
}

namespace lockkeeper::poco {

/// Writes what locks and limits do to a Poco logger. docs/logs.md says which event has which level. A key
/// is shown as `quoted()` does; texts are one line of bounded length; there is no token and no password in
/// any of them. What may come with each call while a store is down is logged ten times in ten seconds at
/// most, for each kind of event, error and store; the next line says how many were left out. An event whose
/// level is off costs one comparison. What the logger throws is dropped.
///
/// Threads that hold or renew locks write to the channel behind the logger: take an AsyncChannel when it may
/// be slow. Thread-safe.
class LOCKKEEPER_POCO_EXPORT LoggingListener final : public Listener {
 public:
  /// The logger need not outlive this object.
  explicit LoggingListener(Poco::Logger& logger);
  ~LoggingListener() override;

  void on(const Event& event) override;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper::poco
