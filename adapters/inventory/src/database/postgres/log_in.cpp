#include "database/postgres/log_in.h"

#include <libpq-fe.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "database/postgres/fault.h"
#include "lockkeeper/error.h"

namespace lockkeeper::inventory {
namespace {

using std::chrono::milliseconds;

constexpr int oldestVersion = 140000;

void dropNotice(void* /*unused*/, const PGresult* /*notice*/) {}

// The library learned to ask for these by "system" in version 16.
std::string systemAuthorities() {
  constexpr int firstWithSystem = 160000;
  if (PQlibVersion() >= firstWithSystem) return "system";
  const char* chosen = std::getenv("SSL_CERT_FILE");
  for (const char* file : {chosen, "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                           "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}) {
    if (file != nullptr && ::access(file, R_OK) == 0) return file;
  }
  throw ConfigError("tls=on needs a caFile: this system has no list of authorities that libpq could use");
}

using Parameters = std::vector<std::pair<const char*, std::string>>;

// Everything that the environment or a file of the user could set otherwise, as far as it matters. There is
// no file of passwords at that path; without one, the library would look for the user's.
Parameters parametersFor(const PostgresServer& server, const std::string& address) {
  Parameters parameters{{"host", server.socket.empty() ? server.host : server.socket},
                        {"port", server.port},
                        {"dbname", server.database},
                        {"user", server.user},
                        {"password", server.password},
                        {"passfile", "/dev/null/none"},
                        {"application_name", "lockkeeper"},
                        {"client_encoding", "UTF8"},
                        {"target_session_attrs", "any"},
                        {"gssencmode", "disable"},
                        {"sslmode", !server.tls     ? "disable"
                                    : server.verify ? "verify-full"
                                                    : "require"}};
  if (!address.empty()) parameters.emplace_back("hostaddr", address);
  if (server.tls && server.verify)
    parameters.emplace_back("sslrootcert",
                            server.files.caFile.empty() ? systemAuthorities() : server.files.caFile);
  if (!server.files.certFile.empty()) {
    parameters.emplace_back("sslcert", server.files.certFile);
    parameters.emplace_back("sslkey", server.files.keyFile);
  }
  return parameters;
}

/// In the order in which they are to be tried; an empty one for a socket.
std::vector<std::string> addressesOf(const PostgresServer& server) {
  if (!server.socket.empty()) return {""};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(server.host.c_str(), server.port.c_str(), &hints, &found);
  if (error != 0) throw StoreUnavailable(server.display + ": " + ::gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  std::vector<std::string> addresses;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(each->ai_addr, each->ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) == 0)
      addresses.emplace_back(text);
  }
  if (addresses.empty()) throw StoreUnavailable(server.display + ": its host has no address");
  return addresses;
}

PostgresConnection connectTo(const PostgresServer& server, const std::string& address, const Clock& clock,
                             Instant until) {
  const Parameters parameters = parametersFor(server, address);
  std::vector<const char*> names;
  std::vector<const char*> values;
  for (const auto& [name, value] : parameters) {
    names.push_back(name);
    values.push_back(value.c_str());
  }
  names.push_back(nullptr);
  values.push_back(nullptr);
  PostgresConnection connection(PQconnectStartParams(names.data(), values.data(), 0));
  if (!connection) throw StoreUnavailable(server.display + ": no memory is left for a connection");
  PQsetNoticeReceiver(connection.get(), dropNotice, nullptr);
  PQsetErrorVerbosity(connection.get(), PQERRORS_VERBOSE);
  auto state = PQstatus(connection.get()) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
  while (state == PGRES_POLLING_READING || state == PGRES_POLLING_WRITING) {
    const short events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    if (!awaitSocket(connection.get(), events, clock, until))
      throw StoreUnavailable(server.display + ": no answer in time");
    state = PQconnectPoll(connection.get());
  }
  if (state != PGRES_POLLING_OK) throwLogInFault(PQerrorMessage(connection.get()), server.display);
  if (const int version = PQserverVersion(connection.get()); version < oldestVersion)
    throw ConfigError(server.display + ": PostgreSQL " + std::to_string(version / 10000) +
                      " is too old: 14 or later is needed");
  PQsetErrorVerbosity(connection.get(), PQERRORS_DEFAULT);
  PQsetnonblocking(connection.get(), 1);
  return connection;
}

/// Whether the session is ours alone; pins it then. A pooler's number is none of a server's process.
bool preparesSession(pg_conn* connection, const PostgresServer& server, std::chrono::seconds operationTimeout,
                     const Clock& clock, Instant until) {
  const std::string isDirect = "pg_catalog.pg_backend_pid() = " + std::to_string(PQbackendPID(connection));
  const std::string question = "SELECT " + isDirect + ", NOT pg_catalog.pg_is_in_recovery(), CASE WHEN " +
                               isDirect + " THEN ROW(" + pinsOf(server, operationTimeout, false) + ") END";
  bool isLate = PQsendQuery(connection, question.c_str()) == 0 || !flushTo(connection, clock, until);
  PostgresResult answer;
  while (!isLate) {
    PostgresResult next = nextOf(connection, clock, until, isLate);
    if (!next) break;
    answer = std::move(next);
    if (PQresultStatus(answer.get()) != PGRES_TUPLES_OK) throwFault(answer.get(), server.display);
  }
  if (isLate || !answer) throw StoreUnavailable(server.display + ": no answer in time to the log-in");
  const auto isTrue = [&](int column) { return PQgetvalue(answer.get(), 0, column) == std::string("t"); };
  if (!isTrue(1)) throw NotPrimary(server.display + " takes no writes, as a standby");
  return isTrue(0);
}

}  // namespace

void FinishConnection::operator()(pg_conn* connection) const { PQfinish(connection); }
void ClearResult::operator()(pg_result* result) const { PQclear(result); }

// Looks at the clock twice a second, because poll() sleeps through the suspension of the machine.
bool awaitSocket(pg_conn* connection, short events, const Clock& clock, Instant until) {
  constexpr milliseconds longestPoll{500};
  pollfd socket{.fd = PQsocket(connection), .events = events, .revents = 0};
  while (true) {
    const Instant now = clock.now();
    const auto left = until <= now ? milliseconds{0} : std::chrono::ceil<milliseconds>(until - now);
    if (::poll(&socket, 1, static_cast<int>(std::min(left, longestPoll).count())) > 0) return true;
    if (now >= until) return false;
  }
}

// Reads meanwhile: a server whose answers nobody takes may read no more.
bool flushTo(pg_conn* connection, const Clock& clock, Instant until) {
  while (true) {
    const int left = PQflush(connection);
    if (left <= 0) return left == 0;
    if (!awaitSocket(connection, POLLIN | POLLOUT, clock, until)) return false;
    if (PQconsumeInput(connection) == 0) return false;
  }
}

PostgresResult nextOf(pg_conn* connection, const Clock& clock, Instant until, bool& isLate) {
  while (PQisBusy(connection) != 0) {
    isLate = !awaitSocket(connection, POLLIN, clock, until);
    if (isLate) return nullptr;
    if (PQconsumeInput(connection) == 0) break;  // The result says why.
  }
  return PostgresResult(PQgetResult(connection));
}

// A setting that a server does not know is not set: `true` makes current_setting() return NULL then. The
// client's own deadline is twice operationTimeout, and comes first unless the client stands still.
std::string pinsOf(const PostgresServer& server, std::chrono::seconds operationTimeout, bool isLocal) {
  const auto set = [&](const std::string& name, const std::string& value) {
    return "pg_catalog.set_config('" + name + "', '" + value + "', " + (isLocal ? "true" : "false") + ")";
  };
  const auto seconds = [](std::chrono::seconds length) { return std::to_string(length.count()) + "s"; };
  const std::string unknown = "pg_catalog.current_setting('transaction_timeout', true) IS NULL";
  return set("search_path", "\"" + server.schema + "\"") + ", " + set("client_min_messages", "warning") +
         ", " + set("default_transaction_isolation", "read committed") + ", " + set("bytea_output", "hex") +
         ", " + set("lock_timeout", seconds(operationTimeout)) + ", " +
         set("statement_timeout", seconds(2 * operationTimeout + std::chrono::seconds{1})) + ", " +
         set("idle_in_transaction_session_timeout", seconds(operationTimeout)) + ", CASE WHEN " + unknown +
         " THEN NULL ELSE " + set("transaction_timeout", "0") +
         " END, CASE pg_catalog.current_setting('synchronous_commit') WHEN 'off' THEN " +
         set("synchronous_commit", "local") + " END";
}

LoggedIn logInTo(const PostgresServer& server, std::chrono::seconds operationTimeout, const Clock& clock,
                 Instant until) {
  const std::vector<std::string> addresses = addressesOf(server);
  for (std::size_t i = 0;; ++i) {
    const Instant now = clock.now();
    const auto share = (until - now) / static_cast<Instant::rep>(addresses.size() - i);
    try {
      LoggedIn session{.connection = connectTo(server, addresses[i], clock, now + share)};
      session.isDirect = preparesSession(session.connection.get(), server, operationTimeout, clock, until);
      return session;
    } catch (const StoreUnavailable&) {
      if (i + 1 == addresses.size() || clock.now() >= until) throw;
    }
  }
}

}  // namespace lockkeeper::inventory
