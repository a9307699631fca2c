#pragma once

#include <lockkeeper/latch/latch.h>

#include <stdexcept>

#include "every_page.h"

namespace pages {

extern std::shared_ptr<lockkeeper::ValueStore> values;
void buildTheIndex();
void report(std::string missing);
void compute(std::uint64_t round);

}  // namespace pages
