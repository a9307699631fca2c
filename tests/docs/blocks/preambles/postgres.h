#pragma once

#include <lockkeeper/postgres/use.h>
#include <lockkeeper/store_uri.h>

#include "mysql.h"

namespace pages {

namespace postgres = lockkeeper::postgres;
using lockkeeper::StoreUri;

}  // namespace pages
