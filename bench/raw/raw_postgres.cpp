#include "raw_postgres.h"

#include <libpq-fe.h>
#include <poll.h>

#include <stdexcept>
#include <utility>

namespace lockkeeper::bench {

namespace {

using OwnedResult = std::unique_ptr<PGresult, decltype(&PQclear)>;

}  // namespace

void RawPostgres::Close::operator()(pg_conn* connection) const { PQfinish(connection); }

RawPostgres::RawPostgres(std::uint16_t port, std::vector<Statement> statements, const std::string& settings)
    : connection_(PQconnectdb(
          ("host=127.0.0.1 user=auditor dbname=locks sslmode=disable port=" + std::to_string(port)).c_str())),
      statements_(std::move(statements)) {
  if (PQstatus(connection_.get()) != CONNECTION_OK)
    throw std::runtime_error(PQerrorMessage(connection_.get()));
  if (!settings.empty()) {
    const OwnedResult result(PQexec(connection_.get(), ("SELECT " + settings).c_str()), PQclear);
    if (PQresultStatus(result.get()) != PGRES_TUPLES_OK)
      throw std::runtime_error(PQresultErrorMessage(result.get()));
  }
  for (const Statement& each : statements_) {
    Prepared& prepared = prepared_.emplace_back();
    prepared.name = "s" + std::to_string(prepared_.size());
    for (const auto& value : each.values) prepared.values.push_back(value ? value->c_str() : nullptr);
    const OwnedResult result(
        PQprepare(connection_.get(), prepared.name.c_str(), each.text.c_str(), 0, nullptr), PQclear);
    if (PQresultStatus(result.get()) != PGRES_COMMAND_OK)
      throw std::runtime_error(PQresultErrorMessage(result.get()));
  }
}

void RawPostgres::run() {
  for (const Prepared& each : prepared_) {
    const OwnedResult result(
        PQexecPrepared(connection_.get(), each.name.c_str(), static_cast<int>(each.values.size()),
                       each.values.data(), nullptr, nullptr, 0),
        PQclear);
    if (PQresultStatus(result.get()) != PGRES_TUPLES_OK)
      throw std::runtime_error(PQresultErrorMessage(result.get()));
    if (PQntuples(result.get()) == 0) throw std::runtime_error("a bare statement answered without a row");
  }
}

void RawPostgres::listen(const std::string& channel) {
  const OwnedResult result(PQexec(connection_.get(), ("LISTEN " + channel).c_str()), PQclear);
  if (PQresultStatus(result.get()) != PGRES_COMMAND_OK)
    throw std::runtime_error(PQresultErrorMessage(result.get()));
}

void RawPostgres::awaitNotification() {
  while (true) {
    if (PGnotify* const told = PQnotifies(connection_.get())) {
      PQfreemem(told);
      return;
    }
    pollfd socket{.fd = PQsocket(connection_.get()), .events = POLLIN, .revents = 0};
    if (::poll(&socket, 1, 10'000) != 1 || PQconsumeInput(connection_.get()) == 0)
      throw std::runtime_error("nobody was notified");
  }
}

}  // namespace lockkeeper::bench
