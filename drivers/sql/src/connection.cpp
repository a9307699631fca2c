#include "lockkeeper/sql/connection.h"

#include <Poco/Data/MySQL/Connector.h>
#include <Poco/Data/MySQL/MySQLException.h>
#include <Poco/Data/MySQL/Utility.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <mutex>

namespace lockkeeper::sql {
namespace {

// Of its own, because the client library closes its socket when it meets an error, and the number could then
// be somebody else's file.
int duplicateSocket(MYSQL* handle) {
  return handle == nullptr ? -1 : ::fcntl(static_cast<int>(mysql_get_socket(handle)), F_DUPFD_CLOEXEC, 0);
}

}  // namespace

Connection::Connection(Poco::Data::Session session, MYSQL* handle)
    : session_(std::move(session)), handle_(handle), socket_(duplicateSocket(handle)) {}

Connection::~Connection() {
  if (socket_ >= 0) ::close(socket_);
}

void Connection::command(const std::string& statement) {
  if (handle_ == nullptr) {
    session_ << statement, Poco::Data::Keywords::now;
  } else if (mysql_real_query(handle_, statement.data(), statement.size()) != 0) {
    throw Poco::Data::MySQL::ConnectionException("command", handle_);
  }
}

bool Connection::seemsAlive() const {
  // No answer is due, so that whatever can be read is the server's farewell.
  pollfd readable{socket_, POLLIN, 0};
  return ::poll(&readable, 1, 0) == 0;
}

std::unique_ptr<Connection> Connection::open(const ServerAddress& server, std::chrono::seconds loginTimeout) {
  static std::once_flag registered;
  std::call_once(registered, [] { Poco::Data::MySQL::Connector::registerConnector(); });
  const auto seconds = static_cast<std::size_t>(loginTimeout.count());
  Poco::Data::Session session("MySQL", server.connectionString(), seconds);
  MYSQL* const handle = Poco::Data::MySQL::Utility::handle(session);
  return std::make_unique<Connection>(std::move(session), handle);
}

}  // namespace lockkeeper::sql
