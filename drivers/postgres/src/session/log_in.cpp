#include "session/log_in.h"

#include <libpq-fe.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <map>
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

struct FreeOptions {
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};

// A file that there is not, so that the library looks for no other one.
constexpr const char* nowhere = "/dev/null/none";

using Parameters = std::vector<std::pair<const char*, std::string>>;

// All that the environment or a file of the user's could say otherwise, as far as the library knows it. A
// variable for anything else would be obeyed, so it is refused.
Parameters parametersOf(const ServerOptions& options, const ServerAddress& server,
                        const std::string& address) {
  const bool isVerified = options.tls && options.verify;
  const bool isPrivate = isVerified || !options.socket.empty();
  const CertificateFiles& files = options.files;
  const auto orNowhere = [](const std::string& file) { return file.empty() ? std::string(nowhere) : file; };
  const std::map<std::string_view, std::string> wanted{
      {"host", options.socket.empty() ? server.host : options.socket},
      {"hostaddr", address},
      {"port", std::to_string(server.port)},
      {"dbname", options.database},
      {"user", options.user},
      {"password", options.password},
      {"passfile", nowhere},
      {"servicefile", nowhere},
      {"application_name", "lockkeeper"},
      {"client_encoding", "UTF8"},
      {"target_session_attrs", "any"},
      {"load_balance_hosts", "disable"},
      {"connect_timeout", "0"},
      {"min_protocol_version", "3.0"},
      {"max_protocol_version", "3.0"},
      {"channel_binding", "prefer"},
      // Whoever answers in clear text must not get the password so.
      {"require_auth", isPrivate ? "password,md5,scram-sha-256,none" : "md5,scram-sha-256,none"},
      {"gssencmode", "disable"},
      {"gssdelegation", "0"},
      {"krbsrvname", "postgres"},
      {"sslmode", isVerified    ? "verify-full"
                  : options.tls ? "require"
                                : "disable"},
      {"sslnegotiation", "postgres"},
      {"sslcompression", "0"},
      {"sslsni", "1"},
      {"sslcertmode", "allow"},
      {"sslrootcert", !isVerified            ? nowhere
                      : files.caFile.empty() ? systemAuthorities()
                                             : files.caFile},
      {"sslcert", orNowhere(files.certFile)},
      {"sslkey", orNowhere(files.keyFile)},
      {"sslcrl", nowhere},
      {"sslcrldir", nowhere},
      {"ssl_min_protocol_version", "TLSv1.2"},
      {"ssl_max_protocol_version", "TLSv1.3"}};
  const std::unique_ptr<PQconninfoOption, FreeOptions> known(PQconndefaults());
  if (!known) throw StoreUnavailable(server.display + ": no memory is left for a connection");
  Parameters parameters;
  for (const PQconninfoOption* each = known.get(); each->keyword != nullptr; ++each) {
    const auto ours = wanted.find(each->keyword);
    const char* const theirs = each->envvar != nullptr ? std::getenv(each->envvar) : nullptr;
    if (ours != wanted.end() && !ours->second.empty()) {
      parameters.emplace_back(ours->first.data(), ours->second);
    } else if (theirs != nullptr && *theirs != '\0') {
      throw ConfigError(server.display + ": the environment variable " + each->envvar +
                        " is set, which libpq obeys: only the store's URI may say how to connect");
    }
  }
  return parameters;
}

// `number` is what whoever accepted the connection calls the session: a pooler's is none of a server's
// process. In a transaction, so that nothing is read by another search_path, and nothing stays with a
// pooler's session.
std::string question(int number, bool asksTimeline) {
  const std::string isDirect = "pg_backend_pid() = " + std::to_string(number);
  return "BEGIN; SET LOCAL search_path = pg_catalog; SELECT " + isDirect +
         ", NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off', "
         "current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on', "
         "current_setting('synchronous_commit') IN ('on', 'remote_apply') AND "
         "current_setting('synchronous_standby_names') <> '', (SELECT count(*) FROM pg_stat_replication), " +
         std::string(asksTimeline ? "CASE WHEN NOT pg_is_in_recovery() THEN "
                                    "substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END"
                                  : "''") +
         ", CASE WHEN " + isDirect + " THEN ROW(" + pins(false) +
         ") END, (SELECT '(a.pid = ' || pg_backend_pid() || ' AND extract(epoch FROM a.backend_start) = ' || "
         "extract(epoch FROM b.backend_start) || ')' FROM pg_stat_activity AS b WHERE b.pid = "
         "pg_backend_pid()), extract(epoch FROM pg_postmaster_start_time())::text, " +
         serverTime + "; COMMIT";
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
// Functions only, with their schema: until this has run, search_path may lead to operators of others.
std::string pins(bool isLocal) {
  const std::string local = isLocal ? "true" : "false";
  const auto set = [&](const std::string& name, const std::string& value) {
    return "pg_catalog.set_config('" + name + "', '" + value + "', " + local + ")";
  };
  std::string all =
      "CASE WHEN pg_catalog.texteq(pg_catalog.current_setting('synchronous_commit'), 'off') THEN " +
      set("synchronous_commit", "local") + " END";
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, const char*>>{
           {"role", "none"},
           {"client_min_messages", "warning"},
           {"default_transaction_isolation", "read committed"},
           {"search_path", "pg_catalog"},
           {"lock_timeout", "1s"},
           {"statement_timeout", "30s"},
           {"idle_in_transaction_session_timeout", "5s"},
           {"TimeZone", "UTC"},
           {"standard_conforming_strings", "on"}})
    all += ", " + set(name, value);
  // A host that has vanished is noticed; a pooler's connection to the server is its own affair.
  if (!isLocal)
    all += ", " + set("tcp_keepalives_idle", "10") + ", " + set("tcp_keepalives_interval", "5") + ", " +
           set("tcp_keepalives_count", "3");
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, const char*>>{
           {"idle_session_timeout", "0"}, {"transaction_timeout", "30s"}})
    all += std::string(", CASE WHEN pg_catalog.current_setting('") + name + "', true) IS NOT NULL THEN " +
           set(name, value) + " END";
  return all;
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
  const int error = ::getaddrinfo(server.host.c_str(), nullptr, &hints, &found);
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
  const std::string text = question(PQbackendPID(handle_.get()), options_.hosts.size() > 1);
  const bool isSent = PQsetnonblocking(handle_.get(), 1) == 0 &&
                      PQsendQuery(handle_.get(), text.c_str()) == 1 && PQflush(handle_.get()) >= 0;
  if (!isSent) fail(PQerrorMessage(handle_.get()));
}

void LogIn::readFacts() {
  if (PQconsumeInput(handle_.get()) == 0) return fail(PQerrorMessage(handle_.get()));
  if (PQflush(handle_.get()) < 0) return fail(PQerrorMessage(handle_.get()));
  while (PQisBusy(handle_.get()) == 0) {
    PGresult* const next = PQgetResult(handle_.get());
    if (next == nullptr) return judge();
    Result result(next);
    const auto status = PQresultStatus(next);
    if (status == PGRES_TUPLES_OK) answer_.emplace(std::move(result));
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) continue;
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
  facts_.started = result.text(0, 8);
  facts_.time = {.value = result.number(0, 9), .heardAt = clock_.now()};
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
