#include "queue/memory_queue.h"

namespace sms_gateway {

bool MemoryQueue::put(const Message& message) {
  const std::lock_guard guard(mutex_);
  if (waiting_.size() >= size_) return false;
  waiting_.push_back(message);
  filled_.notify_one();
  return true;
}

std::optional<Job> MemoryQueue::take(const std::string&, std::chrono::milliseconds wait) {
  std::unique_lock lock(mutex_);
  if (!filled_.wait_for(lock, wait, [&] { return !waiting_.empty(); })) return std::nullopt;
  return Job{.message = waiting_.front()};
}

bool MemoryQueue::done(const std::string&, const Job&) {
  const std::lock_guard guard(mutex_);
  waiting_.pop_front();
  return true;
}

}  // namespace sms_gateway
