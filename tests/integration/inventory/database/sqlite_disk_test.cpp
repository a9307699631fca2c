// SQLite on a disk that takes nothing more.

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <sys/types.h>

#include <cerrno>
#include <initializer_list>
#include <string>

#include "lockkeeper/error.h"
#include "shop.h"

namespace lockkeeper::test {
namespace {

/// While it lives, no file of this process' databases takes another byte.
class FullDisk {
 public:
  FullDisk() { replaceWrites(reinterpret_cast<sqlite3_syscall_ptr>(&refuse)); }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() { replaceWrites(nullptr); }

 private:
  static ssize_t refuse(int, const void*, std::size_t, off64_t) {
    errno = ENOSPC;
    return -1;
  }

  // The system's own ones for null.
  static void replaceWrites(sqlite3_syscall_ptr call) {
    sqlite3_vfs* const files = sqlite3_vfs_find(nullptr);
    for (const char* const name : {"write", "pwrite", "pwrite64"}) files->xSetSystemCall(files, name, call);
  }
};

TEST(SqliteDisk, ThatIsFullIsAnOutageThatPasses) {
  Shop shop(Backend::sqlite);
  shop.service(inventory::Way::conditionalUpdate).restock("pen", 10, "first");
  inventory::StockService service = shop.service(inventory::Way::conditionalUpdate);
  {
    const FullDisk full;
    EXPECT_THROW((void)service.deduct("pen", 1, "order"), StoreUnavailable);
    EXPECT_THROW((void)service.restock("pen", 1, "second"), StoreUnavailable);
  }
  EXPECT_EQ(service.deduct("pen", 1, "order"), inventory::Deduction::deducted);
  EXPECT_EQ(service.restock("pen", 1, "second"), inventory::Restock::restocked);
  EXPECT_EQ(service.level("pen"), 10);
}

}  // namespace
}  // namespace lockkeeper::test
