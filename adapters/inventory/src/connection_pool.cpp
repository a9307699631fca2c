#include "connection_pool.h"

#include "lockkeeper/error.h"

namespace lockkeeper::inventory {

ConnectionPool::ConnectionPool(DatabaseUri database, std::size_t size, std::chrono::seconds operationTimeout,
                               std::shared_ptr<Clock> clock)
    : database_(std::move(database)),
      size_(size),
      operationTimeout_(operationTimeout),
      clock_(std::move(clock)),
      watch_(clock_) {}

std::unique_ptr<Connection> ConnectionPool::take() {
  {
    std::unique_lock held(mutex_);
    const Instant until = saturatingAdd(clock_->now(), operationTimeout_);
    while (used_ == size_) {
      if (clock_->now() >= until) {
        throw StoreUnavailable(database_.display + ": all " + std::to_string(size_) +
                               " sessions stayed in use");
      }
      clock_->wait(held, freed_, until);
    }
    ++used_;
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  try {
    return std::make_unique<Connection>(database_, operationTimeout_);
  } catch (...) {
    putBack(nullptr);
    throw;
  }
}

void ConnectionPool::putBack(std::unique_ptr<Connection> connection) {
  {
    std::lock_guard guard(mutex_);
    --used_;
    if (connection) idle_.push_back(std::move(connection));
  }
  freed_.notify_one();
}

void ConnectionPool::closeIdle() {
  std::vector<std::unique_ptr<Connection>> closing;
  std::lock_guard guard(mutex_);
  closing.swap(idle_);
}

ConnectionPool::Lease::Lease(ConnectionPool& pool) : pool_(pool), connection_(pool.take()) {
  if (connection_->socket() >= 0) {
    const Instant until = saturatingAdd(pool_.clock_->now(), 2 * pool_.operationTimeout_);
    guard_.emplace(pool_.watch_, connection_->socket(), until);
  }
}

ConnectionPool::Lease::~Lease() {
  if (keep_) {
    guard_.reset();
    pool_.putBack(std::move(connection_));
  } else {
    close();
  }
}

void ConnectionPool::Lease::close() {
  if (!connection_) return;
  guard_.reset();
  connection_.reset();
  pool_.putBack(nullptr);
}

}  // namespace lockkeeper::inventory
