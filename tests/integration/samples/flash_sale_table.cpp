#include "flash_sale_table.h"

#include <sstream>

namespace lockkeeper::test {

std::vector<FlashSaleRow> readFlashSale(const std::string& output) {
  std::vector<FlashSaleRow> rows;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream cells(line);
    std::string way, orders, sold, oversold, busy, perSecond;
    for (auto* cell : {&way, &orders, &sold, &oversold, &busy, &perSecond}) std::getline(cells, *cell, '|');
    if (perSecond.empty() || way.starts_with("way")) continue;
    way.erase(way.find_last_not_of(' ') + 1);
    rows.push_back({way, std::stoi(oversold), std::stoi(perSecond)});
  }
  return rows;
}

}  // namespace lockkeeper::test
