#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace flash_sale {

/// A line on stderr that tells how far things are, while it lives; only for people at a terminal.
class Progress {
 public:
  Progress(std::string what, const std::atomic<int>& done, int all);
  ~Progress();

 private:
  void run();

  const std::string what_;
  const std::atomic<int>& done_;
  const int all_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace flash_sale
