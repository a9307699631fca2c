#include "lockkeeper/libpq/connection.h"

#include <libpq-fe.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "lockkeeper/error.h"

namespace lockkeeper::libpq {
namespace {

using std::chrono::milliseconds;

// The one warning that our statements can cause: somebody has ended the wait for a synchronous standby, and
// the server says that the commit has succeeded.
void noteWarning(void* hasWarned, const PGresult* notice) {
  const char* const severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
  const char* const state = PQresultErrorField(notice, PG_DIAG_SQLSTATE);
  if (severity == nullptr || state == nullptr || std::strcmp(severity, "WARNING") != 0) return;
  if (std::strcmp(state, "01000") == 0) *static_cast<bool*>(hasWarned) = true;
}

}  // namespace

void CloseHandle::operator()(pg_conn* handle) const { PQfinish(handle); }

// Looks at the clock twice a second, because poll() sleeps through the suspension of the machine.
void pollUntil(std::vector<pollfd>& sockets, const Clock& clock, Instant until) {
  constexpr milliseconds longestPoll{500};
  while (true) {
    const Instant now = clock.now();
    const auto left = until <= now ? milliseconds{0} : std::chrono::ceil<milliseconds>(until - now);
    const int timeout = static_cast<int>(std::min(left, longestPoll).count());
    if (::poll(sockets.data(), sockets.size(), timeout) > 0 || now >= until) return;
  }
}

Connection::Connection(Handle handle, StoreFaults store, std::shared_ptr<Clock> clock)
    : handle_(std::move(handle)), store_(std::move(store)), clock_(std::move(clock)) {
  PQsetNoticeReceiver(this->handle(), noteWarning, &hasWarned_);
}

std::vector<Result> Connection::ask(const std::string& statements, Instant deadline) {
  start();
  if (PQsendQuery(handle(), statements.c_str()) == 0) lose();
  flush(deadline);
  mayHaveApplied_ = true;
  std::vector<Result> results;
  std::optional<Result> fault;
  while (auto result = next(deadline)) {
    if (!result->isFault()) {
      results.push_back(*std::move(result));
    } else if (!fault) {
      fault = std::move(result);
    }
    if (!isOpen()) break;
  }
  if (fault) fail(*fault, deadline);
  if (!isOpen()) lose();
  return results;
}

bool Connection::isOpen() const { return PQstatus(handle()) == CONNECTION_OK; }

bool Connection::usable() const {
  if (isLost_ || !isOpen()) return false;
  pollfd socket{.fd = PQsocket(handle()), .events = POLLIN, .revents = 0};
  return ::poll(&socket, 1, 0) == 0;
}

void Connection::start() {
  mayHaveApplied_ = hasWarned_ = false;
  if (isLost_) lose("the session has ended");
}

// Reads meanwhile: a server whose answers nobody takes may read no more.
void Connection::flush(Instant until) {
  while (true) {
    const int left = PQflush(handle());
    if (left == 0) return;
    if (left < 0) lose();
    await(POLLIN | POLLOUT, until);
    if (PQconsumeInput(handle()) == 0) lose();
  }
}

std::optional<Result> Connection::next(Instant until) {
  while (PQisBusy(handle()) != 0) {
    await(POLLIN, until);
    if (PQconsumeInput(handle()) == 0) break;  // The result says why.
  }
  PGresult* const result = PQgetResult(handle());
  return result == nullptr ? std::nullopt : std::optional<Result>(Result(result));
}

void Connection::fail(const Result& fault, Instant until) {
  if (endsSession(fault.get()) || !isOpen()) isLost_ = true;
  if (!isLost_ && PQtransactionStatus(handle()) == PQTRANS_INERROR) {
    try {
      static_cast<void>(ask("ROLLBACK", until));
    } catch (const Error&) {
      isLost_ = true;
    }
  }
  throwFault(fault.get(), store_);
}

void Connection::lose(const std::string& words) {
  isLost_ = true;
  throw LostSession(store_.display + ": " + words.substr(0, words.find('\n')));
}

void Connection::lose() { lose(PQerrorMessage(handle())); }

void Connection::await(short events, Instant until) {
  std::vector<pollfd> sockets{{.fd = PQsocket(handle()), .events = events, .revents = 0}};
  pollUntil(sockets, *clock_, until);
  if (sockets[0].revents == 0) lose("no answer in time");
}

}  // namespace lockkeeper::libpq
