#include "lockkeeper/sql/connection_pool.h"

#include "lockkeeper/error.h"

namespace lockkeeper::sql {

ConnectionPool::ConnectionPool(PoolOptions options) : options_(std::move(options)), watch_(options_.clock) {}

std::unique_ptr<Connection> ConnectionPool::take(Instant until, bool& fresh) {
  std::vector<std::unique_ptr<Connection>> dead;  // Closed outside the mutex.
  {
    std::unique_lock held(mutex_);
    while (used_ == options_.size) {
      if (options_.clock->now() >= until) {
        throw StoreUnavailable(options_.display + ": all " + std::to_string(options_.size) +
                               " sessions stayed in use");
      }
      options_.clock->wait(held, freed_, until);
    }
    ++used_;
    while (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      if (connection->seemsAlive()) return connection;
      dead.push_back(std::move(connection));
    }
  }
  try {
    fresh = true;
    return options_.open();
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

ConnectionPool::Lease::Lease(ConnectionPool& pool)
    : pool_(pool),
      connection_(pool.take(saturatingAdd(pool.options_.clock->now(), pool.options_.timeout), fresh_)) {
  begin(saturatingAdd(pool_.options_.clock->now(), 2 * pool_.options_.timeout));
}

ConnectionPool::Lease::Lease(ConnectionPool& pool, Instant deadline)
    : pool_(pool), connection_(pool.take(deadline, fresh_)) {
  begin(deadline);
}

void ConnectionPool::Lease::begin(Instant cutOff) {
  try {
    if (connection_->socket() >= 0) guard_.emplace(pool_.watch_, connection_->socket(), cutOff);
    if (fresh_ && !pool_.options_.setUp.empty()) connection_->command(pool_.options_.setUp);
  } catch (...) {
    close();
    throw;
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

}  // namespace lockkeeper::sql
