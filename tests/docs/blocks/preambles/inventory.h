#pragma once

#include <lockkeeper/exclusive_task.h>
#include <lockkeeper/inventory/stock_service.h>
#include <lockkeeper/schedule/schedule.h>
#include <lockkeeper/schedule/scheduled_task.h>

#include <iostream>

#include "every_page.h"

namespace pages {

namespace inventory = lockkeeper::inventory;

extern const lockkeeper::StoreRegistry registry;
extern lockkeeper::LockManager locks;
extern inventory::StockService stock;
extern const std::shared_ptr<lockkeeper::LockManager> manager;

}  // namespace pages
