#include "http/log.h"

#include <Poco/Logger.h>

#include <string_view>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/error.h"
#include "text/log_throttle.h"

namespace lockkeeper::poco {

namespace {

constexpr std::size_t mostShown = 200;

template <class Report>
std::string textOf(const Report& report, const std::string& what, std::string_view why) {
  std::string text = "route " + std::string(report.route) + ": " + what;
  if (!why.empty()) text += ": " + printable(why, mostShown);
  if (!report.trace.empty()) text.append(", trace ").append(report.trace);
  return text;
}

Poco::Logger& logger() { return Poco::Logger::get("lockkeeper.http"); }

template <class Report>
void debug(const Report& report, const std::string& what, std::string_view why = {}) {
  if (logger().debug()) logger().debug(textOf(report, what, why));
}

/// Of what each request may bring about while a store is down. `kind` tells the faults of a route apart.
template <class Report>
void warn(const Report& report, const char* kind, const std::string& what, std::string_view why) {
  static LogThrottle& throttle = *new LogThrottle();
  if (!logger().warning()) return;
  const auto leftOut = throttle.admit(std::string(report.route) + " " + kind, systemClock()->now());
  if (leftOut) logger().warning(textOf(report, what, why) + leftOutText(*leftOut));
}

/// Whom a limit would refuse, as ", address '192.0.2.7'".
std::string whom(const RateLimitReport& report) {
  const std::string source = ", " + std::string(report.source);
  return report.source == "all" ? source : source + " '" + std::string(report.key) + "'";
}

}  // namespace

void log(const RateLimitReport& report) {
  const Decision& decision = report.decision;
  std::string what = "limit " + std::string(decision.policy) + (decision.allowed ? " allows" : " refuses");
  if (decision.outage) what += " without its store";
  if (report.dryRun) what += " (dry run)";
  if (decision.outage) return warn(report, "limit", what, decision.outageReason);
  if (report.dryRun) what += whom(report);  // otherwise the client itself was told
  debug(report, what);
}

void log(const RequestLockReport& report) {
  const std::string key = printable(report.key, mostShown);
  switch (report.fault) {
    case RequestLockFault::busy:
      return debug(report, key + " is busy", report.message);
    case RequestLockFault::storeDown:
      return warn(report, "lock", key + " cannot be locked", report.message);
    case RequestLockFault::hungUp:
      return debug(report, "the client that waited for " + key + " has hung up");
    case RequestLockFault::lost:
      return warn(report, "lost", key + " was lost while its request was served", "");
  }
}

void log(const IdempotencyReport& report) {
  switch (report.event) {
    case IdempotencyEvent::replayed:
      return debug(report, "an answer was sent again");
    case IdempotencyEvent::inFlight:
      return debug(report, "the same key is being served");
    case IdempotencyEvent::reused:
      return debug(report, "a key belongs to another request");
    case IdempotencyEvent::storeDown:
      return warn(report, "answer", "a request was refused", report.message);
    case IdempotencyEvent::notKept:
      return warn(report, "kept", "an answer could not be kept", report.message);
  }
}

}  // namespace lockkeeper::poco
