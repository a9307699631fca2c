#include "http/log.h"

#include <Poco/Logger.h>

#include <string_view>

#include "lockkeeper/error.h"

namespace lockkeeper::poco {

namespace {

constexpr std::size_t mostShown = 200;

void write(bool warns, std::string_view route, const std::string& what, std::string_view why) {
  Poco::Logger& logger = Poco::Logger::get("lockkeeper.http");
  if (warns ? !logger.warning() : !logger.debug()) return;
  std::string text = "route " + std::string(route) + ": " + what;
  if (!why.empty()) text += ": " + printable(why, mostShown);
  warns ? logger.warning(text) : logger.debug(text);
}

}  // namespace

void log(const RateLimitReport& report) {
  const Decision& decision = report.decision;
  std::string what = "limit " + std::string(decision.policy) + (decision.allowed ? " allows" : " refuses");
  if (decision.outage) what += " without its store";
  if (report.dryRun) what += " (dry run)";
  write(decision.outage.has_value(), report.route, what, decision.outageReason);
}

void log(const RequestLockReport& report) {
  const std::string key = printable(report.key, mostShown);
  switch (report.fault) {
    case RequestLockFault::busy:
      return write(false, report.route, key + " is busy", report.message);
    case RequestLockFault::storeDown:
      return write(true, report.route, key + " cannot be locked", report.message);
    case RequestLockFault::hungUp:
      return write(false, report.route, "the client that waited for " + key + " has hung up", "");
    case RequestLockFault::lost:
      return write(true, report.route, key + " was lost while its request was served", "");
  }
}

void log(const IdempotencyReport& report) {
  switch (report.event) {
    case IdempotencyEvent::replayed:
      return write(false, report.route, "an answer was sent again", "");
    case IdempotencyEvent::inFlight:
      return write(false, report.route, "the same key is being served", "");
    case IdempotencyEvent::reused:
      return write(false, report.route, "a key belongs to another request", "");
    case IdempotencyEvent::storeDown:
      return write(true, report.route, "a request was refused", report.message);
    case IdempotencyEvent::notKept:
      return write(true, report.route, "an answer could not be kept", report.message);
  }
}

}  // namespace lockkeeper::poco
