#pragma once

#include <lockkeeper/inventory/stock_service.h>

#include <iostream>

#include "every_page.h"

namespace pages {

namespace inventory = lockkeeper::inventory;

extern const lockkeeper::StoreRegistry registry;
extern lockkeeper::LockManager locks;
extern inventory::StockService stock;

}  // namespace pages
