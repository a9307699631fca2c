#pragma once

#include <memory>

#include "lockkeeper/listener.h"
#include "lockkeeper/poco/export.h"

namespace Poco {
class Logger;
}

namespace lockkeeper::poco {

/// Writes what locks and limits do to a Poco logger. docs/logs.md says which event has which level. Keys are
/// shown as quoted() does. Texts are one line of bounded length, without tokens and passwords. Events that
/// may come with each call while a store is down are logged at most ten times in ten seconds for each kind of
/// event, error and store; the next line says how many were left out. An event whose level is off costs one
/// comparison. What the logger throws is ignored.
///
/// Threads that hold or renew locks write to the channel behind the logger: use an AsyncChannel if it may be
/// slow. Thread-safe.
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
