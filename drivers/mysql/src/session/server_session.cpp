#include "session/server_session.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "lockkeeper/internal/whole_number.h"
#include "session/client_library.h"
#include "session/log_in.h"
#include "session/reply_fault.h"
#include "session/server_options.h"
#include "session/wait/poll_until.h"

namespace lockkeeper::mysql {
namespace {

// A server that vanished while we wait in its queue is noticed within 30 s. A unix socket takes no offence.
void keepAlive(int socket) {
  const auto set = [socket](int level, int option, int value) {
    static_cast<void>(::setsockopt(socket, level, option, &value, sizeof(value)));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

/// Returns how long it is in memory.
std::size_t addRow(Reply& reply, MYSQL_RES* result, MYSQL_ROW row) {
  const unsigned long* const lengths = mysql_fetch_lengths(result);
  const std::size_t count = mysql_num_fields(result);
  Reply::Row& fields = reply.rows.emplace_back(std::max(count, Reply::leastColumns));
  std::size_t length = fields.size() * sizeof(fields.front());
  for (std::size_t i = 0; i < count; ++i) {
    if (row[i] == nullptr) continue;
    fields[i].emplace(row[i], lengths[i]);
    length += lengths[i];
  }
  return length;
}

Reply::Type typeOf(const MYSQL_FIELD& field) {
  switch (field.type) {
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG:
    case MYSQL_TYPE_YEAR:
      return Reply::Type::integer;
    case MYSQL_TYPE_FLOAT:
    case MYSQL_TYPE_DOUBLE:
      return Reply::Type::floating;
    default:
      return Reply::Type::text;
  }
}

struct FreeResult {
  void operator()(MYSQL_RES* result) const { mysql_free_result(result); }
};

/// False when the rows are longer than longestReply: the rest is not read.
bool addResult(Reply& reply, MYSQL_RES* result) {
  reply.rows.clear();
  reply.types.clear();
  for (unsigned i = 0; i < mysql_num_fields(result); ++i) {
    reply.types.push_back(typeOf(*mysql_fetch_field_direct(result, i)));
  }
  std::size_t length = 0;
  while (const MYSQL_ROW row = mysql_fetch_row(result)) {
    length += addRow(reply, result, row);
    if (length > longestReply) return false;
  }
  return true;
}

// It refers to the parameter.
MYSQL_BIND bound(const ServerSession::Parameter& parameter) {
  MYSQL_BIND value{};
  if (const auto* number = std::get_if<std::int64_t>(&parameter)) {
    value.buffer_type = MYSQL_TYPE_LONGLONG;
    value.buffer = const_cast<std::int64_t*>(number);
    return value;
  }
  const std::string_view bytes = std::get<std::string_view>(parameter);
  value.buffer_type = MYSQL_TYPE_BLOB;
  // Without a buffer, the library would send NULL.
  value.buffer = const_cast<char*>(bytes.empty() ? "" : bytes.data());
  value.buffer_length = bytes.size();
  return value;
}

}  // namespace

bool Reply::lost() const {
  // All of the client library's own numbers mean that its session can be used no more.
  return (error >= CR_MIN_ERROR && error <= CR_MAX_ERROR) || kindOf(error) == FaultKind::connectionLost;
}

std::optional<std::uint64_t> Reply::number(std::size_t column) const {
  if (rows.empty() || !rows.front().at(column)) return std::nullopt;
  return wholeNumber<std::uint64_t>(*rows.front()[column]);
}

std::string Reply::text(std::size_t column) const {
  return rows.empty() ? "" : rows.front().at(column).value_or("");
}

std::int64_t numberIn(const std::optional<std::string>& field) {
  return field ? wholeNumber<std::int64_t>(*field).value_or(0) : 0;
}

void ServerSession::Close::operator()(st_mysql_stmt* statement) const { mysql_stmt_close(statement); }

ServerSession::Socket::~Socket() {
  if (number_ >= 0) ::close(number_);
}

void ServerSession::Socket::duplicate(int other) { number_ = ::fcntl(other, F_DUPFD_CLOEXEC, 0); }

ServerSession::ServerSession(const ServerOptions& options, const ServerAddress& address,
                             std::shared_ptr<Clock> clock, SocketWatch& watch, Instant deadline)
    : clock_(std::move(clock)), handle_(logIn(options, address, *clock_, watch, deadline)) {
  MYSQL* const handle = handle_.get();
  if (options.tls && mysql_get_ssl_cipher(handle) == nullptr) {
    throwConnectFault(CR_SSL_CONNECTION_ERROR, "the connection is not encrypted", address.display);
  }
  const auto socket = static_cast<int>(mysql_get_socket(handle));
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);
  keepAlive(socket);
  // A duplicate, because the library closes its own when it meets an error, and the number could then be
  // somebody else's file.
  socket_.duplicate(socket);
  watched_.emplace(watch, socket_);
  // With another column, because some proxies answer the bare question themselves. With a limit, because the
  // server's own one may be no row.
  const Reply& reply = query("SELECT CONNECTION_ID(),@@version LIMIT 1", deadline);
  if (reply.error != 0 && !reply.lost()) throwConnectFault(reply.error, reply.reason, address.display);
  id_ = reply.error == 0 ? reply.number(0).value_or(0) : 0;
  if (socket_ >= 0 && id_ != 0) return;
  throwConnectFault(CR_SERVER_LOST, "the server does not answer", address.display);
}

ServerSession::~ServerSession() {
  // A server that waits for a lock on our behalf looks whether we are still there, and takes a goodbye, which
  // it has not read yet, for a yes.
  if (replyDue_ && !readable()) cut();
  // Before the statements: each would say goodbye to the server by itself.
  handle_.reset();
}

void ServerSession::cut() const { ::shutdown(socket_, SHUT_RDWR); }

std::uint64_t ServerSession::greetedId() const { return mysql_thread_id(handle_.get()); }

bool ServerSession::send(std::string_view statements, Instant until) {
  const SocketWatch::Guard guard(*watched_, until);
  replyDue_ = true;
  return mysql_send_query(handle_.get(), statements.data(), statements.size()) == 0;
}

bool ServerSession::await(Instant until, int wakeUp) {
  pollfd sources[] = {{socket_, POLLIN, 0}, {wakeUp, POLLIN, 0}};
  pollUntil(sources, *clock_, until);
  return sources[0].revents != 0;
}

void ServerSession::awaitAny(std::span<const ServerSession* const> sessions, const Clock& clock,
                             Instant until, int wakeUp) {
  std::vector<pollfd> sources{{wakeUp, POLLIN, 0}};
  for (const ServerSession* each : sessions) sources.push_back({each->socket_, POLLIN, 0});
  pollUntil(sources, clock, until);
}

bool ServerSession::readable() const {
  pollfd source{socket_, POLLIN, 0};
  return ::poll(&source, 1, 0) != 0;
}

Reply& ServerSession::receive(Instant until) {
  MYSQL* const handle = handle_.get();
  const SocketWatch::Guard guard(*watched_, until);
  replyDue_ = false;
  reply_ = {};
  if (mysql_read_query_result(handle) != 0) return failed();
  for (;;) {
    if (const std::unique_ptr<MYSQL_RES, FreeResult> result{mysql_use_result(handle)}) {
      if (!addResult(reply_, result.get())) return tooLong();
      if (mysql_errno(handle) != 0) return failed();
    } else if (mysql_errno(handle) != 0 || mysql_field_count(handle) != 0) {
      return failed();
    } else {
      reply_.changed += mysql_affected_rows(handle);
      if (const auto id = mysql_insert_id(handle); id != 0) reply_.insertId = id;
    }
    ++reply_.answered;
    const bool announced = mysql_more_results(handle) != 0;
    const int more = mysql_next_result(handle);
    // The library takes some replies that break off for whole ones without rows, or without the results that
    // were to follow: then the connection is at its end.
    if (more < 0) return announced || (reply_.rows.empty() && readable()) ? failed() : reply_;
    if (more > 0) return failed();
  }
}

const Reply& ServerSession::query(std::string_view statements, Instant until) {
  return answer(send(statements, until) ? until : clock_->now());
}

const Reply& ServerSession::answer(Instant until) {
  if (await(until)) return receive(until);
  cut();  // or whoever asks next would take the late answer for its own
  reply_ = {.error = CR_SERVER_LOST, .reason = "no answer in time"};
  return reply_;
}

const Reply& ServerSession::execute(const std::string& statement, std::span<const Parameter> parameters,
                                    Instant until) {
  const SocketWatch::Guard guard(*watched_, until);
  reply_ = {};
  Prepared& prepared = prepared_[statement];
  const bool isNew = !prepared;
  if (isNew) prepared.reset(mysql_stmt_init(handle_.get()));
  MYSQL_STMT* const handle = prepared.get();
  if (handle == nullptr) throw std::bad_alloc();
  std::vector<MYSQL_BIND> values;
  values.reserve(parameters.size());
  for (const Parameter& each : parameters) values.push_back(bound(each));
  if ((!isNew || mysql_stmt_prepare(handle, statement.data(), statement.size()) == 0) &&
      !mysql_stmt_bind_param(handle, values.data()) && mysql_stmt_execute(handle) == 0) {
    reply_.answered = 1;
    reply_.changed = mysql_stmt_affected_rows(handle);
    reply_.insertId = mysql_stmt_insert_id(handle);
    return reply_;
  }
  setError(mysql_stmt_errno(handle), mysql_stmt_error(handle));
  prepared_.erase(statement);  // The server may not know it any more.
  return reply_;
}

Reply& ServerSession::failed() {
  setError(mysql_errno(handle_.get()), mysql_error(handle_.get()));
  return reply_;
}

Reply& ServerSession::tooLong() {
  cut();  // or the rest of the reply would be read
  reply_ = {.error = CR_NET_PACKET_TOO_LARGE,
            .reason = "the reply is longer than " + std::to_string(longestReply) + " bytes"};
  return reply_;
}

void ServerSession::setError(unsigned number, const char* words) {
  // Without a number, it is the library's own way of saying that something is wrong with the connection.
  reply_.error = number != 0 ? number : CR_SERVER_LOST;
  reply_.reason = words;
}

}  // namespace lockkeeper::mysql
