#include <lockkeeper/inventory/stock_service.h>
#include <lockkeeper/lock_manager.h>
#include <lockkeeper/memory/memory_driver.h>

#include <filesystem>
#include <iostream>

using namespace lockkeeper::inventory;

int main() {
  lockkeeper::LockManager locks(std::make_shared<lockkeeper::MemoryDriver>());
  const auto file = std::filesystem::current_path() / "stock.db";
  std::filesystem::remove(file);
  StockService stock("sqlite:" + file.string(), locks, Way::fencedRow);
  stock.createSchema();
  stock.restock("pen", 1);
  const bool ours = stock.deduct("pen", 1, "order 42") == Deduction::deducted;
  std::cout << (ours && stock.level("pen") == 0 ? "order 42 is ours\n" : "order 42 failed\n");
}
