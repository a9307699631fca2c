#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lockkeeper/driver/clock.h"
#include "lockkeeper/sql/connection.h"
#include "lockkeeper/sql/socket_watch.h"

namespace lockkeeper::sql {

struct PoolOptions {
  /// Connects; throws Poco's exceptions. Must end by itself.
  std::function<std::unique_ptr<Connection>()> open;
  /// The first statement on each new connection; "" for none.
  std::string setUp{};
  std::size_t size;
  /// The longest wait for a free connection. A lease without a deadline of its own is cut off after twice as
  /// long.
  std::chrono::milliseconds timeout;
  std::string display;  ///< The database's name in messages.
  std::shared_ptr<Clock> clock;
};

/// A bounded number of connections, opened when needed. Poco's own pool hands out dead sessions and connects
/// under its mutex; here a connection comes back only from a user who says that it is sound, and is handed
/// out again only while its server has not ended it. Thread-safe.
class ConnectionPool {
 public:
  explicit ConnectionPool(PoolOptions options);

  /// The use of one connection, cut off when its time is over.
  class Lease {
   public:
    /// Blocks until a connection is free or made. Throws StoreUnavailable when none gets free, and Poco's
    /// exceptions when the database cannot be reached.
    explicit Lease(ConnectionPool& pool);
    Lease(ConnectionPool& pool, Instant deadline);
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    /// Closes the connection, unless it is to be kept.
    ~Lease();

    Connection& connection() { return *connection_; }
    Poco::Data::Session& sql() { return connection_->sql(); }

    /// The connection is sound and has no open transaction: the next user may have it.
    void keep() { keep_ = true; }

    /// Ends the lease before its time, without keeping the connection.
    void close();

   private:
    void begin(Instant cutOff);

    ConnectionPool& pool_;
    bool fresh_ = false;
    std::unique_ptr<Connection> connection_;
    std::optional<SocketWatch::Guard> guard_;
    bool keep_ = false;
  };

  /// Closes the connections that nobody uses: when one is dead, they mostly all are.
  void closeIdle();

  const std::string& display() const { return options_.display; }

 private:
  std::unique_ptr<Connection> take(Instant until, bool& fresh);
  void putBack(std::unique_ptr<Connection> connection);

  const PoolOptions options_;
  SocketWatch watch_;

  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<std::unique_ptr<Connection>> idle_;
  std::size_t used_ = 0;
};

}  // namespace lockkeeper::sql
