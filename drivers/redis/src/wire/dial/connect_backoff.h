#pragma once

#include <string>

#include "lockkeeper/driver/clock.h"
#include "lockkeeper/driver/random.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/backoff.h"

namespace lockkeeper::redis {

/// When the next attempt to connect is due: at once after a success, else a backoff of 20 to 500 ms later, so
/// that the clients of a restarted server do not come all at once.
class ConnectBackoff {
 public:
  ConnectBackoff();

  /// Throws the last failure again while the next attempt is not due.
  void check(Instant now) const;

  bool due(Instant now) const { return now >= next_; }

  void succeeded();
  void failed(ErrorCode code, std::string text, Instant now, Random& random);

 private:
  Backoff backoff_;
  Instant next_ = Instant::min();
  ErrorCode code_ = ErrorCode::storeUnavailable;
  std::string text_;
};

}  // namespace lockkeeper::redis
