#include "connection.h"

#include <Poco/Data/MySQL/Connector.h>
#include <Poco/Data/MySQL/Utility.h>
#include <Poco/Data/SQLite/Connector.h>
#include <fcntl.h>
#include <unistd.h>

#include <mutex>

namespace lockkeeper::inventory {
namespace {

using Poco::Data::Keywords::into;
using Poco::Data::Keywords::now;

Poco::Data::Session connect(const DatabaseUri& database, std::chrono::seconds operationTimeout) {
  static std::once_flag registered;
  std::call_once(registered, [] {
    Poco::Data::SQLite::Connector::registerConnector();
    Poco::Data::MySQL::Connector::registerConnector();
  });
  const char* const connector = database.dialect == Dialect::sqlite ? "SQLite" : "MySQL";
  return {connector, database.connection, static_cast<std::size_t>(operationTimeout.count())};
}

}  // namespace

Connection::Connection(const DatabaseUri& database, std::chrono::seconds operationTimeout)
    : dialect_(database.dialect), session_(connect(database, operationTimeout)) {
  if (dialect_ == Dialect::sqlite) {
    session_ << "PRAGMA busy_timeout = " +
                    std::to_string(std::chrono::milliseconds(operationTimeout).count()),
        now;
    std::string mode;
    session_ << "PRAGMA journal_mode = WAL", into(mode), now;
    return;
  }
  session_ << "SET SESSION autocommit = 1, innodb_lock_wait_timeout = " +
                  std::to_string(operationTimeout.count()),
      now;
  // A duplicate, because the client library closes its own when it meets an error, and the number could then
  // be somebody else's file.
  MYSQL* const handle = Poco::Data::MySQL::Utility::handle(session_);
  socket_ = ::fcntl(static_cast<int>(mysql_get_socket(handle)), F_DUPFD_CLOEXEC, 0);
}

Connection::~Connection() {
  if (socket_ >= 0) ::close(socket_);
}

}  // namespace lockkeeper::inventory
