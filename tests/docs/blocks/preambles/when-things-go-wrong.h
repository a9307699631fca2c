#pragma once

#include <stop_token>

#include "every_page.h"

namespace pages {

extern lockkeeper::LockManager locks;

// Of the application.
void writeReport(std::stop_token stop);
void undo();

}  // namespace pages
