#pragma once

#include <lockkeeper/mutex.h>

#include "every_page.h"

namespace pages {

extern lockkeeper::LockManager locks;

}  // namespace pages
