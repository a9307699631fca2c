#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "wire/protocol/request.h"

namespace lockkeeper::redis {

/// Requests to one node that are used again and again, so that their buffers need not be allocated for each
/// call. Thread-safe. Lives longer than what it lends.
class RequestPool {
 public:
  RequestPool() { free_.reserve(mostFree); }  // so that giving back allocates nothing

  /// Gives a request back to its pool.
  struct GiveBack {
    RequestPool* pool;
    void operator()(Request* request) const noexcept { pool->giveBack(request); }
  };
  using Loan = std::unique_ptr<Request, GiveBack>;

  /// An empty request, back in the pool when the loan ends.
  Loan take() {
    const std::lock_guard held(mutex_);
    if (free_.empty()) return Loan(std::make_unique<Request>().release(), {this});
    Loan loan(free_.back().release(), {this});
    free_.pop_back();
    return loan;
  }

 private:
  // More than are under way at a time, but for a crowd; and longer commands are a script's text, which is
  // rare.
  static constexpr std::size_t mostFree = 64;
  static constexpr std::size_t mostBytes = 4096;

  void giveBack(Request* request) noexcept {
    // A call that ended for want of memory may get its replies yet: they must not be another one's.
    if (request->isAsked()) return;
    std::unique_ptr<Request> returned(request);
    if (returned->capacity() > mostBytes) return;
    returned->clear();
    const std::lock_guard held(mutex_);
    if (free_.size() < mostFree) free_.push_back(std::move(returned));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Request>> free_;
};

}  // namespace lockkeeper::redis
