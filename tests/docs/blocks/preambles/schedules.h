#pragma once

#include <lockkeeper/exclusive_task.h>
#include <lockkeeper/poco/lock_services.h>
#include <lockkeeper/schedule/schedule.h>
#include <lockkeeper/schedule/scheduled_task.h>
#include <lockkeeper/schedule/time_zone.h>

#include <optional>

#include "every_page.h"

namespace pages {

// Of the application.
extern const lockkeeper::poco::LockServices services;
extern const std::shared_ptr<lockkeeper::LockManager> locks;
void writeReport(std::optional<lockkeeper::Fence> fence, std::stop_token stop);

}  // namespace pages
