#pragma once

#include <string>
#include <vector>

namespace lockkeeper::test {

/// A row of the table that the sample flash_sale prints.
struct FlashSaleRow {
  std::string way;
  int oversold;   ///< Pieces that were sold and did not exist.
  int perSecond;  ///< Orders that were answered.
};

std::vector<FlashSaleRow> readFlashSale(const std::string& output);

}  // namespace lockkeeper::test
