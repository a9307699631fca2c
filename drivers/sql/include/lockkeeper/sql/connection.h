#pragma once

#include <Poco/Data/Session.h>

#include <chrono>
#include <memory>
#include <string>

#include "lockkeeper/sql/server_address.h"

struct st_mysql;

namespace lockkeeper::sql {

/// One session with a database. One thread at a time.
class Connection {
 public:
  /// `handle` is the client library's, for sessions with a server.
  explicit Connection(Poco::Data::Session session, st_mysql* handle = nullptr);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  /// A session with a MySQL or MariaDB server. Blocks for `loginTimeout`; the server
  /// counts whole seconds. Throws Poco's exceptions.
  static std::unique_ptr<Connection> open(const ServerAddress& server, std::chrono::seconds loginTimeout);

  Poco::Data::Session& sql() { return session_; }

  /// Sends a statement that has no parameters and no result, in one round trip. Poco prepares every
  /// statement, which MySQL refuses for those that begin or roll back a transaction. Throws Poco's
  /// exceptions.
  void command(const std::string& statement);

  /// False when the server has ended the session, as far as its socket tells. Asks nobody. For idle sessions.
  bool seemsAlive() const;

  /// What a user of the pool keeps with the session from lease to lease, such as prepared statements. Null at
  /// first; ends before the session does.
  std::shared_ptr<void>& companion() { return companion_; }

  /// A duplicate of the session's socket, for SocketWatch; -1 when there is none. It stays open as long as
  /// this object.
  int socket() const { return socket_; }

 private:
  Poco::Data::Session session_;
  st_mysql* const handle_;
  const int socket_;
  std::shared_ptr<void> companion_;
};

}  // namespace lockkeeper::sql
