#pragma once

#include <lockkeeper/migration/open.h>

#include "every_page.h"

namespace pages {

extern const std::string oldUri, newUri;
extern const lockkeeper::migration::MigrationOptions options;

}  // namespace pages
