#include "sale/report.h"

#include <iomanip>

namespace flash_sale {
namespace {

double milliseconds(const std::vector<std::chrono::microseconds>& sorted, int percent) {
  if (sorted.empty()) return 0;
  const std::size_t index = (sorted.size() - 1) * static_cast<std::size_t>(percent) / 100;
  return static_cast<double>(sorted[index].count()) / 1000;
}

}  // namespace

void printTable(std::ostream& out, const std::vector<SaleResult>& sales, int orders) {
  out << "way                | orders |   sold | oversold |   busy | orders/s | p50 ms | p99 ms\n"
         "-------------------+--------+--------+----------+--------+----------+--------+-------\n"
      << std::fixed;
  for (const auto& sale : sales) {
    const Rush& rush = sale.rush;
    out << std::left << std::setw(18) << sale.way << std::right << " | " << std::setw(6) << orders << " | "
        << std::setw(6) << rush.sold << " | " << std::setw(8) << sale.oversold << " | " << std::setw(6)
        << rush.busy << " | " << std::setw(8) << std::setprecision(0) << orders / rush.took.count() << " | "
        << std::setprecision(1) << std::setw(6) << milliseconds(rush.waits, 50) << " | " << std::setw(6)
        << milliseconds(rush.waits, 99) << '\n';
  }
}

}  // namespace flash_sale
