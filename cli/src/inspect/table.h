#pragma once

#include <string>
#include <vector>

namespace lockkeeper::cli {

/// Rows of equally many cells in aligned columns; the first row is the heading.
std::vector<std::string> tableLines(const std::vector<std::vector<std::string>>& rows);

/// Prints them.
void printTable(const std::vector<std::vector<std::string>>& rows);

}  // namespace lockkeeper::cli
