#pragma once

#include <string>
#include <vector>

namespace lockkeeper::cli {

/// Prints rows of equally many cells in aligned columns; the first row is the heading.
void printTable(const std::vector<std::vector<std::string>>& rows);

}  // namespace lockkeeper::cli
