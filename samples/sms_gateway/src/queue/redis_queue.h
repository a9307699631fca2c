#pragma once

#include <cstddef>
#include <mutex>

#include "queue/job_queue.h"
#include "queue/redis_client.h"

namespace sms_gateway {

/// The queue of all processes, in Redis 6.2 or later: a list of waiting jobs, and for each worker a list of
/// what it holds. A job moves between them in one step, so that it is always in one of them. It is as durable
/// as the Redis server is.
///
/// A job is "<delivery> <JSON object>": only a whole one ends with the brace that closes the object.
class RedisQueue final : public JobQueue {
 public:
  RedisQueue(const lockkeeper::StoreUri& uri, const std::string& keyNamespace, std::size_t size);

  bool put(const Message& message) override;
  void enter(const std::string& worker) override;
  std::optional<Job> take(const std::string& worker, std::chrono::milliseconds wait) override;
  bool done(const std::string& worker, const Job& job) override;
  std::vector<std::string> workers() override;
  void takeBack(const std::string& worker) override;

 private:
  std::string heldKey(const std::string& worker) const { return heldPrefix_ + worker; }
  std::optional<Job> read(const std::optional<std::string>& reply);

  const std::string waitingKey_;
  const std::string workersKey_;
  const std::string heldPrefix_;
  const std::string size_;

  std::mutex putting_;
  RedisClient forPut_;
  RedisClient forWorker_;  // apart, because it waits
};

}  // namespace sms_gateway
