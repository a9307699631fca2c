#pragma once

#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>

#include <atomic>
#include <memory>
#include <string>

#include "console/lock_feed.h"
#include "lockkeeper/driver/clock.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/poco/client_options.h"
#include "text/log_throttle.h"

namespace lockkeeper::poco {

/// Takes a lock from the holder that a viewer of the console saw. Each attempt of an operator is logged; of
/// others, as many as LogThrottle lets through. Of those who send a password, one is asked for at a time, and
/// after a wrong one none for a second. Thread-safe.
class BreakRequests {
 public:
  /// `secret` is what only pages of this console know. Throws ConfigError when the store breaks no locks.
  BreakRequests(std::shared_ptr<LockDriver> store, std::shared_ptr<const LockFeed> feed, std::string secret,
                UserOf operatorOf);

  /// Whether anybody may.
  bool allowed() const { return operatorOf_ != nullptr; }
  /// Answers a POST. Breaks nothing unless it comes from a page of this console, from an operator, and names
  /// the present holder.
  void handle(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response) const;

 private:
  struct Outcome;
  struct Wanted;

  void answerTo(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response) const;
  void log(const Poco::Net::HTTPServerRequest& request, const std::string& who, const std::string& what,
           const std::string& detail) const;
  /// Says whose request it is and `what` it asks for, as far as that is seen; `who` stays empty unless it is
  /// an operator.
  Outcome decide(Poco::Net::HTTPServerRequest& request, std::string& who, std::string& what) const;
  Outcome take(const Wanted& wanted) const;
  /// False while the last password was wrong a moment ago, or is still being looked at.
  bool mayTryPassword() const;

  const std::shared_ptr<LockDriver> store_;
  const std::shared_ptr<const LockFeed> feed_;
  const std::string secret_;
  const UserOf operatorOf_;
  mutable LogThrottle ofOthers_;
  mutable std::atomic<Instant> nextPassword_{Instant{}};  // when one is looked at again
};

}  // namespace lockkeeper::poco
