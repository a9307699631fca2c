#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "wire/protocol/request.h"

namespace lockkeeper::redis {

/// Requests to one node that are used again and again, so that their buffers need not be allocated for each
/// call. Thread-safe. Lives longer than what it lends.
class RequestPool {
 public:
  /// Gives a request back to its pool.
  struct GiveBack {
    RequestPool* pool;
    void operator()(Request* request) const noexcept { pool->giveBack(request); }
  };
  using Loan = std::unique_ptr<Request, GiveBack>;

  /// An empty request, back in the pool when the loan ends.
  Loan take() {
    const std::lock_guard held(mutex_);
    if (free_.empty()) {
      auto made = std::make_unique<Request>();
      free_.reserve(made_ + 1);  // so that giving back allocates nothing
      ++made_;
      return Loan(made.release(), {this});
    }
    Loan loan(free_.back().release(), {this});
    free_.pop_back();
    return loan;
  }

 private:
  void giveBack(Request* request) noexcept {
    request->clear();
    const std::lock_guard held(mutex_);
    free_.emplace_back(request);
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Request>> free_;
  std::size_t made_ = 0;
};

}  // namespace lockkeeper::redis
