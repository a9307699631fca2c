// Locks several keys together, again and again, until it is killed or has done so a number of times.
// Arguments: the store's URI, a folder, the number of times (0: until it is killed), the keys. Exit code 1: a
// key had two holders, or a fence went back.

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/lock_manager.h"
#include "lockkeeper/mysql/use.h"
#include "lockkeeper/store_registry.h"

namespace lockkeeper::test {
namespace {

/// The resource that a key protects: a file with the last fence. The kernel tells whether another process
/// uses it; a killed one does not any more.
class Resource {
 public:
  explicit Resource(const std::string& path)
      : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {}
  Resource(const Resource&) = delete;
  ~Resource() { ::close(file_); }

  bool use(Fence fence) {
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0) return false;
    Fence last = 0;
    if (::pread(file_, &last, sizeof(last), 0) < 0 || fence <= last) return false;
    return ::pwrite(file_, &fence, sizeof(fence), 0) == sizeof(fence);
  }

 private:
  const int file_;
};

int takePart(LockManager& manager, const std::string& folder, int rounds,
             const std::vector<std::string_view>& keys) {
  for (int round = 0; rounds == 0 || round < rounds; ++round) {
    LockSet set = manager.lockAll(keys, {.ttl = std::chrono::seconds{6}, .waitFor = std::chrono::minutes{2}});
    {
      std::vector<std::unique_ptr<Resource>> used;
      for (const std::string_view key : keys) {
        used.push_back(std::make_unique<Resource>(folder + "/" + std::string(key)));
        if (!used.back()->use(*set.fence(key)) && set.valid()) return 1;
      }
      ::usleep(500);
    }
    set.release();
  }
  return 0;
}

}  // namespace
}  // namespace lockkeeper::test

int main(int count, char** arguments) {
  if (count < 5) return 64;
  lockkeeper::StoreRegistry registry;
  lockkeeper::mysql::use(registry);
  lockkeeper::LockManager manager(registry.open(arguments[1]));
  return lockkeeper::test::takePart(manager, arguments[2], std::atoi(arguments[3]),
                                    {arguments + 4, arguments + count});
}
