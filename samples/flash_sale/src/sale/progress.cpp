#include "sale/progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace flash_sale {

Progress::Progress(std::string what, const std::atomic<int>& done, int all)
    : what_(std::move(what)), done_(done), all_(all) {
  if (::isatty(STDERR_FILENO) != 0) thread_ = std::thread([this] { run(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Progress::run() {
  std::unique_lock held(mutex_);
  const auto start = std::chrono::steady_clock::now();
  while (!stopping_) {
    const int done = done_;
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    std::fprintf(stderr, "\r\033[K%s: %d of %d orders, %.0f a second", what_.c_str(), done, all_,
                 done / std::max(taken.count(), 0.001));
    changed_.wait_for(held, std::chrono::milliseconds{100});
  }
  std::fputs("\r\033[K", stderr);
}

}  // namespace flash_sale
