#include "connect_backoff.h"

#include <algorithm>
#include <utility>

#include "server_error.h"

namespace lockkeeper::redis {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds first{20};
constexpr milliseconds longest{500};
constexpr unsigned mostDoublings = 5;  // more make no difference

}  // namespace

void ConnectBackoff::check(Instant now) const {
  if (failures_ > 0 && now < next_) throwError(code_, text_);
}

void ConnectBackoff::failed(ErrorCode code, std::string text, Instant now, Random& random) {
  const milliseconds length = std::min(first * (1 << std::min(failures_, mostDoublings)), longest);
  ++failures_;
  next_ = now + length - milliseconds(random.upTo(static_cast<std::uint64_t>(length.count()) / 2));
  code_ = code;
  text_ = std::move(text);
}

}  // namespace lockkeeper::redis
