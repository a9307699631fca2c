#include "lockkeeper/poco/logging_listener.h"

#include <Poco/AutoPtr.h>
#include <Poco/Logger.h>

#include <atomic>
#include <new>

#include "lockkeeper/driver/key.h"
#include "lockkeeper/duration.h"
#include "metrics/label_table.h"
#include "metrics/printable.h"

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

  /// Whether this node did otherwise before; at first, nodes are taken to vote.
  bool changed(std::string_view node, bool fails) noexcept {
    try {
      return failing_.of(node).exchange(fails, std::memory_order_relaxed) != fails;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  Poco::AutoPtr<Poco::Logger> logger;

 private:
  LabelTable<std::atomic<bool>> failing_;  // by node
};

LoggingListener::LoggingListener(Poco::Logger& logger) : impl_(std::make_unique<Impl>(logger)) {}

LoggingListener::~LoggingListener() = default;

void LoggingListener::acquired(std::string_view key, nanoseconds waited, std::optional<Fence> fence) {
  impl_->log(Message::PRIO_DEBUG, [&] {
    const std::string suffix = fence ? ", fence " + std::to_string(*fence) : "";
    return "acquired " + quoted(key) + " after " + shown(waited) + suffix;
  });
}

void LoggingListener::timedOut(std::string_view key, nanoseconds waited) {
  impl_->log(Message::PRIO_DEBUG, [&] { return quoted(key) + " was busy for " + shown(waited); });
}

void LoggingListener::gaveUp(std::string_view key, ErrorCode why, nanoseconds waited) {
  const auto level = why == ErrorCode::cancelled ? Message::PRIO_DEBUG : Message::PRIO_WARNING;
  impl_->log(level, [&] {
    return "gave up waiting for " + quoted(key) + " after " + shown(waited) + ": " + toString(why);
  });
}

void LoggingListener::renewed(std::string_view key) {
  impl_->log(Message::PRIO_TRACE, [&] { return "renewed " + quoted(key); });
}

void LoggingListener::suspect(std::string_view key, nanoseconds remaining) {
  impl_->log(Message::PRIO_WARNING, [&] {
    return "a renewal of " + quoted(key) + " failed: its lease runs for another " + shown(remaining);
  });
}

void LoggingListener::lost(std::string_view key, LossReason reason) {
  impl_->log(Message::PRIO_ERROR, [&] { return "lost " + quoted(key) + ": " + toString(reason); });
}

void LoggingListener::released(std::string_view key, nanoseconds held) {
  impl_->log(Message::PRIO_DEBUG, [&] { return "released " + quoted(key) + ", held for " + shown(held); });
}

void LoggingListener::refused(std::string_view key, std::string_view policy,
                              std::chrono::microseconds retryAfter) {
  impl_->log(Message::PRIO_DEBUG, [&] {
    return "the limit " + quoted(policy) + " refused " + quoted(key) + ", which may come again in " +
           shown(retryAfter);
  });
}

void LoggingListener::storeFailed(std::string_view key, ErrorCode code, std::string_view message) {
  // These two stay until somebody mends the set-up.
  const bool lasting = code == ErrorCode::config || code == ErrorCode::protocol;
  impl_->log(lasting ? Message::PRIO_ERROR : Message::PRIO_WARNING, [&] {
    return "the store failed for " + quoted(key) + " (" + toString(code) + "): " + text(message);
  });
}

// A node that is down is told once and not with each round.
void LoggingListener::nodeAsked(std::string_view node, NodeOutcome outcome, nanoseconds latency) {
  impl_->log(Message::PRIO_TRACE,
             [&] { return text(node) + " " + toString(outcome) + " after " + shown(latency); });
  if (outcome == NodeOutcome::unanswered || !impl_->logger->is(Message::PRIO_WARNING)) return;
  const bool fails = outcome == NodeOutcome::failed || outcome == NodeOutcome::leftOut;
  if (!impl_->changed(node, fails)) return;
  if (fails) {
    impl_->log(Message::PRIO_WARNING, [&] { return text(node) + " does not vote: " + toString(outcome); });
  } else {
    impl_->log(Message::PRIO_NOTICE, [&] { return text(node) + " votes again"; });
  }
}

void LoggingListener::noted(std::string_view store, std::string_view message) {
  impl_->log(Message::PRIO_NOTICE, [&] { return text(store) + ": " + text(message); });
}

}  // namespace lockkeeper::poco
