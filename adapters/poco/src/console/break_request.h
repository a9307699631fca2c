#pragma once

#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>

#include <memory>
#include <string>

#include "console/lock_feed.h"
#include "console/password_pauses.h"
#include "http/problem.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/poco/client_options.h"
#include "text/log_throttle.h"

namespace lockkeeper::poco {

/// Takes a lock from the holder that a viewer of the console saw. Each attempt of an operator is logged; of
/// others, as many as LogThrottle lets through. Thread-safe.
class BreakRequests {
 public:
  /// `secret` is what only pages of this console know. Throws ConfigError when the store breaks no locks.
  BreakRequests(std::shared_ptr<LockDriver> store, std::shared_ptr<LockFeed> feed, std::string secret,
                UserOf operatorOf);

  /// Whether anybody may.
  bool allowed() const { return operatorOf_ != nullptr; }
  /// Answers a POST. Breaks nothing unless it comes from a page of this console, from an operator, and names
  /// the present holder.
  void handle(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response) const;

 private:
  struct Wanted;

  void log(const Poco::Net::HTTPServerRequest& request, const std::string& who, const std::string& what,
           const std::string& detail) const;
  /// Says whose request it is and `what` it asks for, as far as that is seen; `who` stays empty unless it is
  /// an operator.
  Problem decide(Poco::Net::HTTPServerRequest& request, std::string& who, std::string& what) const;
  Problem take(const Wanted& wanted) const;

  const std::shared_ptr<LockDriver> store_;
  const std::shared_ptr<LockFeed> feed_;
  const std::string secret_;
  const UserOf operatorOf_;
  mutable LogThrottle ofOthers_;
  mutable PasswordPauses pauses_;
};

}  // namespace lockkeeper::poco
