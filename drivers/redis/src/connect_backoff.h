#pragma once

#include <string>

#include "lockkeeper/clock.h"
#include "lockkeeper/error.h"
#include "lockkeeper/random.h"

namespace lockkeeper::redis {

/// When the next attempt to connect is due: at once after a success, else 20 ms after a failure, doubling to
/// 500 ms, each less up to a half at random, so that the clients of a restarted server do not come all at
/// once.
class ConnectBackoff {
 public:
  /// Throws the last failure again while the next attempt is not due.
  void check(Instant now) const;

  void succeeded() { failures_ = 0; }
  void failed(ErrorCode code, std::string text, Instant now, Random& random);

 private:
  unsigned failures_ = 0;  // since the last success
  Instant next_{};
  ErrorCode code_ = ErrorCode::storeUnavailable;
  std::string text_;
};

}  // namespace lockkeeper::redis
