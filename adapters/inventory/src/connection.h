#pragma once

#include <Poco/Data/Session.h>

#include <chrono>

#include "database_uri.h"

namespace lockkeeper::inventory {

/// One session with the database, set up for our transactions. One thread at a time.
class Connection {
 public:
  /// Connects. Blocks for `operationTimeout`. Throws Poco's exceptions.
  Connection(const DatabaseUri& database, std::chrono::seconds operationTimeout);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  Poco::Data::Session& sql() { return session_; }
  Dialect dialect() const { return dialect_; }

  /// The socket to the server; -1 for SQLite. It stays open as long as this object.
  int socket() const { return socket_; }

 private:
  const Dialect dialect_;
  Poco::Data::Session session_;
  int socket_ = -1;
};

}  // namespace lockkeeper::inventory
