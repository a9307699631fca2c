#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "connection.h"
#include "lockkeeper/clock.h"
#include "socket_watch.h"

namespace lockkeeper::inventory {

/// A bounded number of connections, opened when needed. Poco's own pool hands out dead sessions and connects
/// under its mutex; here a connection comes back only from a user who says that it is sound. Thread-safe.
class ConnectionPool {
 public:
  ConnectionPool(DatabaseUri database, std::size_t size, std::chrono::seconds operationTimeout,
                 std::shared_ptr<Clock> clock);

  /// One connection for one transaction. It is cut off after twice the operation timeout.
  class Lease {
   public:
    /// Blocks until a connection is free or made, for one operation timeout each. Throws StoreUnavailable
    /// when none gets free, and Poco's exceptions when the database cannot be reached.
    explicit Lease(ConnectionPool& pool);
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    /// Closes the connection, unless it is to be kept.
    ~Lease();

    Connection& connection() { return *connection_; }

    /// The connection is sound and has no open transaction: the next user may have it.
    void keep() { keep_ = true; }

    /// Ends the lease before its time, without keeping the connection.
    void close();

   private:
    ConnectionPool& pool_;
    std::unique_ptr<Connection> connection_;
    std::optional<SocketWatch::Guard> guard_;
    bool keep_ = false;
  };

  /// Closes the connections that nobody uses: when one is dead, they mostly all are.
  void closeIdle();

  const std::string& display() const { return database_.display; }

 private:
  std::unique_ptr<Connection> take();
  void putBack(std::unique_ptr<Connection> connection);

  const DatabaseUri database_;
  const std::size_t size_;
  const std::chrono::seconds operationTimeout_;
  const std::shared_ptr<Clock> clock_;
  SocketWatch watch_;

  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<std::unique_ptr<Connection>> idle_;
  std::size_t used_ = 0;
};

}  // namespace lockkeeper::inventory
