#pragma once

#include "every_page.h"

namespace pages {

void retryIn(std::chrono::microseconds pause);

}  // namespace pages
