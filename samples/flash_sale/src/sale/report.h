#pragma once

#include <ostream>
#include <vector>

#include "sale/sale.h"

namespace flash_sale {

void printTable(std::ostream& out, const std::vector<SaleResult>& sales, int orders);

}  // namespace flash_sale
