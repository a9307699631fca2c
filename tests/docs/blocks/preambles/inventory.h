#pragma once

#include <lockkeeper/inventory/stock_service.h>

#include "every_page.h"

namespace pages {

namespace inventory = lockkeeper::inventory;

extern const lockkeeper::StoreRegistry registry;

}  // namespace pages
