#pragma once

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "message.h"

namespace sms_gateway {

/// The queue could not be asked. What was asked of it may have been done.
class QueueDown : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Messages that wait to be sent, oldest first. A worker *holds* the message that it has taken until it says
/// that it is done; what a dead worker holds can be taken back. put() may be called by any thread, all else
/// by one thread at a time. Everything may throw QueueDown.
class JobQueue {
 public:
  virtual ~JobQueue() = default;

  /// False when the queue is full.
  virtual bool put(const Message& message) = 0;

  /// Makes a worker known, so that others find what it holds when it dies.
  virtual void enter(const std::string& worker) = 0;

  /// What the worker holds already, since it did not see the answer that it was done or has taken it; else
  /// the oldest message, which it holds from now on. Nothing when none has come for `wait`.
  virtual std::optional<Job> take(const std::string& worker, std::chrono::milliseconds wait) = 0;

  /// The worker has sent a job that it holds. False when it does not hold it any more: it was taken for dead,
  /// and the job is sent again, as a redelivery.
  virtual bool done(const std::string& worker, const Job& job) = 0;

  /// All workers that have entered and were not taken back from.
  virtual std::vector<std::string> workers() = 0;

  /// Puts what the worker holds back to the front, as a redelivery, and forgets the worker.
  virtual void takeBack(const std::string& worker) = 0;
};

}  // namespace sms_gateway
