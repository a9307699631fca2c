#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>

#include "lockkeeper/driver/driver.h"

namespace lockkeeper::test {

/// A whole number in a file, for several processes, that refuses whoever has a lower fence than somebody who
/// has read or written it. Blocks while another process is at it.
class GuardedValue {
 public:
  explicit GuardedValue(const std::filesystem::path& path)
      : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (file_ < 0) throw std::system_error(errno, std::generic_category(), path.string());
  }
  GuardedValue(const GuardedValue&) = delete;
  GuardedValue& operator=(const GuardedValue&) = delete;
  ~GuardedValue() { ::close(file_); }

  /// Empty: refused.
  std::optional<std::int64_t> read(Fence fence) const {
    std::optional<std::int64_t> value;
    change(fence, [&](Content& content) { value = content.value; });
    return value;
  }
  /// False: refused.
  bool write(Fence fence, std::int64_t value) const {
    return change(fence, [&](Content& content) { content.value = value; });
  }

 private:
  struct Content {
    Fence fence = 0;
    std::int64_t value = 0;
  };

  template <class Use>
  bool change(Fence fence, Use&& use) const {
    require(::flock(file_, LOCK_EX) == 0);
    Content content;
    const ssize_t length = ::pread(file_, &content, sizeof content, 0);
    const bool isIn = fence >= content.fence;
    bool done = length == 0 || length == sizeof content;
    if (done && isIn) {
      content.fence = fence;
      use(content);
      done = ::pwrite(file_, &content, sizeof content, 0) == sizeof content;
    }
    require(::flock(file_, LOCK_UN) == 0 && done);
    return isIn;
  }
  static void require(bool done) {
    if (!done) throw std::system_error(errno, std::generic_category(), "a guarded value");
  }

  const int file_;
};

}  // namespace lockkeeper::test
