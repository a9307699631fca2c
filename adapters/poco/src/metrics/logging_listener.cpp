#include "lockkeeper/poco/logging_listener.h"

#include <Poco/AutoPtr.h>
#include <Poco/Logger.h>

#include <mutex>
#include <set>
#include <string>

#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "text/log_throttle.h"

namespace lockkeeper::poco {

using Poco::Message;
using std::chrono::nanoseconds;

namespace {

constexpr std::size_t longestText = 512;

std::string text(std::string_view message) { return printable(message, longestText); }

std::string shown(nanoseconds duration) {
  return formatDuration(std::chrono::duration_cast<std::chrono::milliseconds>(duration));
}

}  // namespace

class LoggingListener::Impl {
 public:
  explicit Impl(Poco::Logger& to) : logger(&to, true) {}

  /// Logs what `line()` makes, which is not called while the level is off.
  template <class Line>
  void log(Message::Priority level, Line line) noexcept {
    if (!logger->is(level)) return;
    try {
      logger->log(Message(logger->name(), line(), level));
    } catch (...) {
      // A broken log must not break a lock.
    }
  }

  /// Likewise, of what may come with each call while a store is down: a bounded number of lines for each of
  /// its errors.
  template <class Line>
  void logSome(Message::Priority level, const Event& event, Line line) noexcept {
    if (!logger->is(level)) return;
    try {
      const std::string kind = std::string(toString(event.kind)) + " " +
                               (event.error ? toString(*event.error) : "") + " " + std::string(event.store);
      if (const auto leftOut = throttle_.admit(kind, event.ended, event.leftOut))
        log(level, [&] { return line() + leftOutText(*leftOut); });
    } catch (...) {
      // As in log().
    }
  }

  /// Whether this node did otherwise before; at first, nodes are taken to vote.
  bool changed(std::string_view node, bool fails) {
    const std::lock_guard guard(mutex_);
    const auto known = failing_.find(node);
    if ((known != failing_.end()) == fails) return false;
    if (fails) {
      failing_.emplace(node);
    } else {
      failing_.erase(known);
    }
    return true;
  }

  void logNode(const Event& event);

  Poco::AutoPtr<Poco::Logger> logger;

 private:
  std::mutex mutex_;
  std::set<std::string, std::less<>> failing_;  // nodes
  LogThrottle throttle_;
};

LoggingListener::LoggingListener(Poco::Logger& logger) : impl_(std::make_unique<Impl>(logger)) {}

LoggingListener::~LoggingListener() = default;

// A node that is down is told once and not with each round.
void LoggingListener::Impl::logNode(const Event& event) {
  log(Message::PRIO_TRACE,
      [&] { return text(event.store) + " " + toString(event.node) + " after " + shown(event.duration()); });
  if (event.node == NodeOutcome::unanswered || !logger->is(Message::PRIO_WARNING)) return;
  const bool fails = event.node == NodeOutcome::failed || event.node == NodeOutcome::leftOut;
  if (!changed(event.store, fails)) return;
  if (fails) {
    log(Message::PRIO_WARNING, [&] { return text(event.store) + " does not vote: " + toString(event.node); });
  } else {
    log(Message::PRIO_NOTICE, [&] { return text(event.store) + " votes again"; });
  }
}

void LoggingListener::on(const Event& event) {
  const auto key = [&] { return quoted(event.key); };
  const auto cause = [&] { return std::string(event.error ? toString(*event.error) : "unknown"); };
  const auto traced = [&](const auto& line) {
    return event.trace.empty() ? line() : std::string(line()).append(", trace ") + text(event.trace);
  };
  const auto log = [&](Message::Priority level, auto line) {
    impl_->log(level, [&] { return traced(line); });
  };
  const auto logSome = [&](Message::Priority level, auto line) {
    impl_->logSome(level, event, [&] { return traced(line); });
  };
  switch (event.kind) {
    case EventKind::acquired:
      return log(Message::PRIO_DEBUG, [&] {
        const std::string suffix = event.fence ? ", fence " + std::to_string(*event.fence) : "";
        return "acquired " + key() + " after " + shown(event.duration()) + suffix;
      });
    case EventKind::timedOut:
      return log(Message::PRIO_DEBUG, [&] { return key() + " was busy for " + shown(event.duration()); });
    case EventKind::gaveUp: {
      const auto line = [&] {
        return "gave up waiting for " + key() + " after " + shown(event.duration()) + ": " + cause();
      };
      if (event.error == ErrorCode::cancelled) return log(Message::PRIO_DEBUG, line);
      return logSome(Message::PRIO_WARNING, line);
    }
    case EventKind::renewed:
      return log(Message::PRIO_TRACE, [&] { return "renewed " + key(); });
    case EventKind::renewalFailed:
      return logSome(Message::PRIO_WARNING, [&] {
        return "a renewal of " + key() + " failed: its lease runs for another " + shown(event.remaining) +
               " (" + cause() + "): " + text(event.text);
      });
    case EventKind::lost:
      return log(Message::PRIO_ERROR, [&] { return "lost " + key() + ": " + toString(event.loss); });
    case EventKind::released:
      return log(Message::PRIO_DEBUG,
                 [&] { return "released " + key() + ", held for " + shown(event.duration()); });
    case EventKind::decided:
      if (event.decision->allowed) return;
      return log(Message::PRIO_DEBUG, [&] {
        return "the limit " + quoted(event.decision->policy) + " refused " + key() +
               ", which may come again in " + shown(event.decision->retryAfter);
      });
    case EventKind::attemptFailed: {
      // These two stay until somebody mends the set-up.
      const bool lasting = event.error == ErrorCode::config || event.error == ErrorCode::protocol;
      return logSome(lasting ? Message::PRIO_ERROR : Message::PRIO_WARNING, [&] {
        return "the store failed for " + key() + " (" + cause() + "): " + text(event.text);
      });
    }
    case EventKind::nodeAsked:
      return impl_->logNode(event);
    case EventKind::noted:
      return log(Message::PRIO_NOTICE, [&] { return text(event.store) + ": " + text(event.text); });
    case EventKind::callbackFailed:
    case EventKind::callbackLate:
      return log(Message::PRIO_ERROR, [&] { return "the election " + key() + ": " + text(event.text); });
    case EventKind::taskEnded:
      return log(
          event.text.empty() && event.task != TaskOutcome::lost ? Message::PRIO_DEBUG : Message::PRIO_WARNING,
          [&] {
            const std::string suffix = event.text.empty() ? "" : ": " + text(event.text);
            return "the task " + key() + " " + toString(event.task) + " after " + shown(event.duration()) +
                   suffix;
          });
    case EventKind::loadFailed:
    case EventKind::notStored:
      return logSome(Message::PRIO_WARNING, [&] {
        return "the value of " + key() + ": " + toString(event.kind) + ": " + text(event.text);
      });
    case EventKind::termBegan:
    case EventKind::termEnded:
      return log(Message::PRIO_NOTICE, [&] {
        return event.kind == EventKind::termBegan
                   ? "this process leads " + key()
                   : "this process has led " + key() + " for " + shown(event.duration());
      });
    case EventKind::taskPlanned:
      return log(Message::PRIO_TRACE,
                 [&] { return "the next tick of the task " + key() + " is in " + shown(event.remaining); });
    case EventKind::scheduleEnded:
      return log(Message::PRIO_TRACE, [&] { return "the task " + key() + " has no further tick"; });
    case EventKind::phaseChanged:
      return log(Message::PRIO_NOTICE,
                 [&] { return "the migration " + key() + " now goes by " + text(event.text); });
    case EventKind::requestRefused:
      return log(Message::PRIO_TRACE, [&] {
        return "the route " + key() + (event.dryRun ? " would refuse" : " refuses") + " a request with " +
               std::to_string(event.status);
      });
    case EventKind::cacheHit:
    case EventKind::cacheStale:
    case EventKind::cacheLoaded:
      return log(Message::PRIO_TRACE, [&] { return "the value of " + key() + ": " + toString(event.kind); });
  }
}

}  // namespace lockkeeper::poco
