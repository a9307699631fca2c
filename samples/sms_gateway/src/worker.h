#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "lockkeeper/poco/lock_services.h"
#include "outbox.h"
#include "queue/job_queue.h"
#include "settings.h"

namespace sms_gateway {

/// Sends what the queue has, at the rate that all workers share. Each worker is alive as long as it holds a
/// lock of its own name: who gets that lock may take its messages back.
class Worker {
 public:
  /// All must outlive it. Throws lockkeeper::ConfigError unless lockkeeper.limits.sending is a leaky-queue.
  Worker(const Settings& settings, const lockkeeper::poco::LockServices& services, JobQueue& queue,
         Outbox& outbox);

  /// Works until `stop` is triggered.
  void run(const std::stop_token& stop);

 private:
  void live(const std::stop_token& stop);
  void step(const lockkeeper::Lock& alive, const std::stop_token& stop);
  bool deliver(const Job& job, const lockkeeper::Lock& alive, const std::stop_token& stop);
  void takeBackFromTheDead();

  const Settings& settings_;
  lockkeeper::LockManager& locks_;
  lockkeeper::RateLimiter& limits_;
  const lockkeeper::poco::LivePolicy sending_;  // the rate of all workers together
  JobQueue& queue_;
  Outbox& outbox_;
  std::string name_;
  std::string sent_;  // the ticket of the last job that was sent
  std::chrono::steady_clock::time_point lastLook_{};
};

}  // namespace sms_gateway
