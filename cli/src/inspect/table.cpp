#include "inspect/table.h"

#include <algorithm>
#include <iostream>

#include "shown.h"

namespace lockkeeper::cli {

std::vector<std::string> tableLines(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columnsOf(row[i]));
  }
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - columnsOf(row[i]), ' ');
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

void printTable(const std::vector<std::vector<std::string>>& rows) {
  for (const std::string& line : tableLines(rows)) std::cout << line << "\n";
}

}  // namespace lockkeeper::cli
