#include "raw_postgres.h"

#include <libpq-fe.h>

#include <stdexcept>
#include <utility>

namespace lockkeeper::bench {

void RawPostgres::Close::operator()(pg_conn* connection) const { PQfinish(connection); }

RawPostgres::RawPostgres(const std::string& address, const Statement& take, const Statement& free,
                         std::string key, std::string token)
    : connection_(PQconnectdb(address.c_str())),
      key_(std::move(key)),
      token_(std::move(token)),
      takeValues_(take.values),
      freeValues_(free.values) {
  if (PQstatus(connection_.get()) != CONNECTION_OK)
    throw std::runtime_error(PQerrorMessage(connection_.get()));
  prepare("take", take);
  prepare("free", free);
}

void RawPostgres::prepare(const char* name, const Statement& statement) {
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(
      PQprepare(connection_.get(), name, statement.text.c_str(), 0, nullptr), PQclear);
  if (PQresultStatus(result.get()) != PGRES_COMMAND_OK)
    throw std::runtime_error(PQresultErrorMessage(result.get()));
}

void RawPostgres::pair() {
  run("take", takeValues_);
  run("free", freeValues_);
}

void RawPostgres::run(const char* name, std::vector<const char*> values) {
  values.insert(values.begin(), {key_.c_str(), token_.c_str()});
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(
      PQexecPrepared(connection_.get(), name, static_cast<int>(values.size()), values.data(), nullptr,
                     nullptr, 0),
      PQclear);
  if (PQresultStatus(result.get()) != PGRES_TUPLES_OK || PQntuples(result.get()) == 0)
    throw std::runtime_error(PQresultErrorMessage(result.get()));
}

}  // namespace lockkeeper::bench
