#include "http/log.h"

#include <Poco/Logger.h>

#include <string_view>

#include "lockkeeper/error.h"

namespace lockkeeper::poco {

namespace {

constexpr std::size_t mostShown = 200;

template <class Report>
void write(bool warns, const Report& report, const std::string& what, std::string_view why) {
  Poco::Logger& logger = Poco::Logger::get("lockkeeper.http");
  if (warns ? !logger.warning() : !logger.debug()) return;
  std::string text = "route " + std::string(report.route) + ": " + what;
  if (!why.empty()) text += ": " + printable(why, mostShown);
  if (!report.trace.empty()) text.append(", trace ").append(report.trace);
  warns ? logger.warning(text) : logger.debug(text);
}

}  // namespace

void log(const RateLimitReport& report) {
  const Decision& decision = report.decision;
  std::string what = "limit " + std::string(decision.policy) + (decision.allowed ? " allows" : " refuses");
  if (decision.outage) what += " without its store";
  if (report.dryRun) what += " (dry run)";
  write(decision.outage.has_value(), report, what, decision.outageReason);
}

void log(const RequestLockReport& report) {
  const std::string key = printable(report.key, mostShown);
  switch (report.fault) {
    case RequestLockFault::busy:
      return write(false, report, key + " is busy", report.message);
    case RequestLockFault::storeDown:
      return write(true, report, key + " cannot be locked", report.message);
    case RequestLockFault::hungUp:
      return write(false, report, "the client that waited for " + key + " has hung up", "");
    case RequestLockFault::lost:
      return write(true, report, key + " was lost while its request was served", "");
  }
}

void log(const IdempotencyReport& report) {
  switch (report.event) {
    case IdempotencyEvent::replayed:
      return write(false, report, "an answer was sent again", "");
    case IdempotencyEvent::inFlight:
      return write(false, report, "the same key is being served", "");
    case IdempotencyEvent::reused:
      return write(false, report, "a key belongs to another request", "");
    case IdempotencyEvent::storeDown:
      return write(true, report, "a request was refused", report.message);
    case IdempotencyEvent::notKept:
      return write(true, report, "an answer could not be kept", report.message);
  }
}

}  // namespace lockkeeper::poco
