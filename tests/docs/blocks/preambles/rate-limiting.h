#pragma once

#include "every_page.h"

namespace pages {

extern lockkeeper::RateLimiter limits;
extern const lockkeeper::RatePolicy perUser, perAddress, global;
extern const std::string phoneNumber, userId, address;

void serviceUnavailable();
void tooManyRequests(std::chrono::microseconds retryAfter);

}  // namespace pages
