#include "wire/dial/connect_backoff.h"

#include <utility>

#include "wire/protocol/server_error.h"

namespace lockkeeper::redis {
namespace {

constexpr Backoff initial(std::chrono::milliseconds{20}, std::chrono::milliseconds{500});

}  // namespace

ConnectBackoff::ConnectBackoff() : backoff_(initial) {}

void ConnectBackoff::check(Instant now) const {
  if (now < next_) throwError(code_, text_);
}

void ConnectBackoff::succeeded() {
  backoff_ = initial;
  next_ = Instant::min();
}

void ConnectBackoff::failed(ErrorCode code, std::string text, Instant now, Random& random) {
  next_ = now + backoff_.next(random);
  code_ = code;
  text_ = std::move(text);
}

}  // namespace lockkeeper::redis
