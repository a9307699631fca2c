#pragma once

#include "every_page.h"

namespace pages {

extern lockkeeper::LockManager locks;
extern std::string from, to;
extern int amount;
void move(int amount, std::string from, lockkeeper::Fence fromFence, std::string to, lockkeeper::Fence toFence);

}  // namespace pages
