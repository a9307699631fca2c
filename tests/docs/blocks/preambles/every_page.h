#pragma once

#include <lockkeeper/lock_manager.h>
#include <lockkeeper/etcd/use.h>
#include <lockkeeper/mysql/use.h>
#include <lockkeeper/rate_limiter.h>
#include <lockkeeper/redis/use.h>
#include <lockkeeper/store_registry.h>

#include <chrono>
#include <memory>
#include <string>

// What every page of the documentation takes for granted. A block may declare such a name anew.

namespace pages {

using namespace std::chrono_literals;

extern lockkeeper::StoreRegistry stores;

}  // namespace pages
