#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

namespace lockkeeper::test {

/// No file and no socket can be opened while it lives. Those that are open work as before.
class NoFiles {
 public:
  NoFiles() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &usual_), 0);
    const rlimit few{.rlim_cur = 64, .rlim_max = usual_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int file; (file = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) fillers_.push_back(file);
  }
  NoFiles(const NoFiles&) = delete;
  NoFiles& operator=(const NoFiles&) = delete;
  ~NoFiles() {
    for (const int each : fillers_) ::close(each);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &usual_), 0);
  }

 private:
  rlimit usual_{};
  std::vector<int> fillers_;
};

}  // namespace lockkeeper::test
