#include "session/log_in.h"

#include <libpq-fe.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "lockkeeper/error.h"
#include "session/fault.h"
#include "session/statement.h"

namespace lockkeeper::postgres {
namespace {

using std::chrono::milliseconds;

// The first whose pg_terminate_backend() waits for the end.
constexpr int oldestVersion = 140000;

void ignoreNotice(void* /*unused*/, const PGresult* /*notice*/) {}

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
Parameters parametersOf(const ServerOptions& options, const ServerAddress& server,
                        const std::string& address) {
  Parameters parameters{{"host", options.socket.empty() ? server.host : options.socket},
                        {"port", server.port},
                        {"dbname", options.database},
                        {"user", options.user},
                        {"password", options.password},
                        {"passfile", "/dev/null/none"},
                        {"application_name", "lockkeeper"},
                        {"client_encoding", "UTF8"},
                        {"target_session_attrs", "any"},
                        {"gssencmode", "disable"},
                        {"sslmode", !options.tls     ? "disable"
                                    : options.verify ? "verify-full"
                                                     : "require"}};
  if (!address.empty()) parameters.emplace_back("hostaddr", address);
  if (options.tls && options.verify)
    parameters.emplace_back("sslrootcert",
                            options.files.caFile.empty() ? systemAuthorities() : options.files.caFile);
  if (!options.files.certFile.empty()) {
    parameters.emplace_back("sslcert", options.files.certFile);
    parameters.emplace_back("sslkey", options.files.keyFile);
  }
  return parameters;
}

// $1 is what whoever accepted the connection calls the session: a pooler's number is none of a server's
// process.
std::string question(bool asksTimeline) {
  return "SELECT pg_backend_pid() = $1::int, NOT pg_is_in_recovery() AND "
         "current_setting('transaction_read_only') = 'off', current_setting('fsync') = 'on' AND "
         "current_setting('full_page_writes') = 'on', current_setting('synchronous_commit') IN ('on', "
         "'remote_apply') AND current_setting('synchronous_standby_names') <> '', (SELECT count(*) FROM "
         "pg_stat_replication), " +
         std::string(asksTimeline ? "CASE WHEN NOT pg_is_in_recovery() THEN "
                                    "substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END"
                                  : "''") +
         ", CASE WHEN pg_backend_pid() = $1::int THEN ROW(" + pins(false) +
         ") END, (SELECT '(a.pid = ' || pg_backend_pid() || ' AND extract(epoch FROM a.backend_start) = ' || "
         "extract(epoch FROM b.backend_start) || ')' FROM pg_stat_activity AS b WHERE b.pid = "
         "pg_backend_pid())";
}

}  // namespace

std::string durabilityOf(const ServerFacts& facts) {
  std::string text =
      facts.survivesCrash
          ? "PostgreSQL, flushed at each commit: survives a crash and a power loss of the server"
          : "PostgreSQL with fsync or full_page_writes off: a crash of the server's machine may "
            "undo commits or damage the database";
  return text + (facts.mayLag ? "; an asynchronous standby that takes over may lack the last of them" : "");
}

// A setting that a server does not know is not set: `true` makes current_setting() return NULL then.
std::string pins(bool isLocal) {
  const std::string local = isLocal ? "true" : "false";
  const auto set = [&](const std::string& name, const std::string& value) {
    return "set_config('" + name + "', '" + value + "', " + local + ")";
  };
  const auto setIfKnown = [&](const std::string& name, const std::string& value) {
    return "CASE WHEN current_setting('" + name + "', true) IS NOT NULL THEN " + set(name, value) + " END";
  };
  return set("role", "none") + ", " + set("client_min_messages", "warning") + ", " +
         set("default_transaction_isolation", "read committed") + ", " + set("search_path", "pg_catalog") +
         ", " + set("lock_timeout", "1s") + ", " + set("statement_timeout", "30s") + ", " +
         set("idle_in_transaction_session_timeout", "5s") + ", " + set("TimeZone", "UTC") + ", " +
         set("standard_conforming_strings", "on") + ", " + setIfKnown("idle_session_timeout", "0") + ", " +
         setIfKnown("transaction_timeout", "30s") +
         ", CASE current_setting('synchronous_commit') WHEN 'off' THEN " +
         set("synchronous_commit", "local") + " END";
}

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

void CloseHandle::operator()(pg_conn* handle) const { PQfinish(handle); }

LogIn::LogIn(const ServerOptions& options, std::size_t host, const Clock& clock, Instant until)
    : options_(options), host_(host), clock_(clock), until_(until), addressUntil_(until) {
  try {
    lookUp();
    connectNext();
  } catch (const Error&) {
    failure_ = std::current_exception();
    state_ = State::failed;
  }
}

void LogIn::lookUp() {
  const ServerAddress& server = options_.hosts[host_];
  if (!options_.socket.empty()) {
    addresses_.emplace_back();
    return;
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(server.host.c_str(), server.port.c_str(), &hints, &found);
  if (error != 0) throw StoreUnavailable(display() + ": " + ::gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(each->ai_addr, each->ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) == 0)
      addresses_.insert(addresses_.begin(), text);
  }
  if (addresses_.empty()) throw StoreUnavailable(display() + ": its host has no address");
}

void LogIn::connectNext() {
  const Instant now = clock_.now();
  addressUntil_ = now + (until_ - now) / static_cast<Instant::rep>(addresses_.size());
  const std::string address = addresses_.back();
  addresses_.pop_back();
  const Parameters parameters = parametersOf(options_, options_.hosts[host_], address);
  std::vector<const char*> names;
  std::vector<const char*> values;
  for (const auto& [name, value] : parameters) {
    names.push_back(name);
    values.push_back(value.c_str());
  }
  names.push_back(nullptr);
  values.push_back(nullptr);
  state_ = State::connecting;
  handle_.reset(PQconnectStartParams(names.data(), values.data(), 0));
  if (!handle_) throw StoreUnavailable(display() + ": no memory is left for a connection");
  PQsetNoticeReceiver(handle_.get(), ignoreNotice, nullptr);
  PQsetErrorVerbosity(handle_.get(), PQERRORS_VERBOSE);
  events_ = POLLOUT;
  if (PQstatus(handle_.get()) == CONNECTION_BAD) fail(PQerrorMessage(handle_.get()));
}

pollfd LogIn::waitsFor() const { return {.fd = PQsocket(handle_.get()), .events = events_, .revents = 0}; }

void LogIn::proceed() {
  if (ended()) return;
  pollfd socket = waitsFor();
  const bool isReady = ::poll(&socket, 1, 0) > 0;
  if (!isReady) {
    if (clock_.now() >= addressUntil_) fail("no answer in time");
    return;
  }
  if (state_ == State::asking) return readFacts();
  switch (PQconnectPoll(handle_.get())) {
    case PGRES_POLLING_OK:
      return connected();
    case PGRES_POLLING_FAILED:
      return fail(PQerrorMessage(handle_.get()));
    case PGRES_POLLING_READING:
      events_ = POLLIN;
      break;
    default:
      events_ = POLLOUT;
  }
  if (clock_.now() >= addressUntil_) fail("no answer in time");
}

void LogIn::connected() {
  if (const int version = PQserverVersion(handle_.get()); version < oldestVersion)
    return refuse("PostgreSQL " + std::to_string(version / 10000) + " is too old: 14 or later is needed");
  state_ = State::asking;
  events_ = POLLIN;
  PQsetErrorVerbosity(handle_.get(), PQERRORS_DEFAULT);
  const std::string text = question(options_.hosts.size() > 1);
  const std::string number = std::to_string(PQbackendPID(handle_.get()));
  const char* const value = number.c_str();
  const bool isSent =
      PQsetnonblocking(handle_.get(), 1) == 0 &&
      PQsendQueryParams(handle_.get(), text.c_str(), 1, nullptr, &value, nullptr, nullptr, 0) == 1 &&
      PQflush(handle_.get()) >= 0;
  if (!isSent) fail(PQerrorMessage(handle_.get()));
}

void LogIn::readFacts() {
  if (PQconsumeInput(handle_.get()) == 0) return fail(PQerrorMessage(handle_.get()));
  if (PQflush(handle_.get()) < 0) return fail(PQerrorMessage(handle_.get()));
  while (PQisBusy(handle_.get()) == 0) {
    PGresult* const next = PQgetResult(handle_.get());
    if (next == nullptr) return judge();
    answer_.emplace(next);
    if (PQresultStatus(next) == PGRES_TUPLES_OK) continue;
    state_ = State::failed;
    try {
      throwFault(next, Effect::none, display(), "");
    } catch (const Error&) {
      failure_ = std::current_exception();
    }
    return;
  }
  if (clock_.now() >= addressUntil_) fail("no answer in time");
}

void LogIn::judge() {
  if (!answer_) return fail("no answer");
  const Result& result = *answer_;
  facts_.isDirect = result.isTrue(0, 0);
  if (facts_.isDirect) facts_.backend = result.text(0, 7);
  if (facts_.isDirect && facts_.backend.empty())
    return refuse("the role does not see its own session in pg_stat_activity");
  facts_.takesWrites = result.isTrue(0, 1);
  facts_.survivesCrash = result.isTrue(0, 2);
  const bool hasStandbys = options_.hosts.size() > 1 || result.number(0, 4) > 0;
  facts_.mayLag = hasStandbys && !result.isTrue(0, 3);
  const std::string_view timeline = result.text(0, 5);
  std::from_chars(timeline.data(), timeline.data() + timeline.size(), facts_.timeline, 16);
  state_ = State::done;
  failure_ = nullptr;
}

// Another address would be no better.
void LogIn::refuse(const std::string& words) {
  failure_ = std::make_exception_ptr(ConfigError(display() + ": " + words));
  state_ = State::failed;
  handle_.reset();
}

void LogIn::fail(const std::string& words) {
  try {
    throwLogInFault(words, display());
  } catch (const Error&) {
    failure_ = std::current_exception();
  }
  state_ = State::failed;
  handle_.reset();
  if (!addresses_.empty() && clock_.now() < until_) connectNext();
}

}  // namespace lockkeeper::postgres
