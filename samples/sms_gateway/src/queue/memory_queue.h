#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>

#include "queue/job_queue.h"

namespace sms_gateway {

/// The queue of one process with one worker, for a first look: it ends with the process.
class MemoryQueue final : public JobQueue {
 public:
  explicit MemoryQueue(std::size_t size) : size_(size) {}

  bool put(const Message& message) override;
  void enter(const std::string&) override {}
  std::optional<Job> take(const std::string& worker, std::chrono::milliseconds wait) override;
  bool done(const std::string& worker, const Job& job) override;
  std::vector<std::string> workers() override { return {}; }
  void takeBack(const std::string&) override {}

 private:
  const std::size_t size_;
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<Message> waiting_;
};

}  // namespace sms_gateway
