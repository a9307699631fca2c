#include "host_log_in.h"

#include <libpq-fe.h>
#include <netdb.h>
#include <sys/socket.h>

#include <charconv>
#include <memory>

#include "lockkeeper/error.h"
#include "parameters.h"

namespace lockkeeper::libpq {
namespace {

// The first whose pg_terminate_backend() waits for the end.
constexpr int oldestVersion = 140000;

void ignoreNotice(void* /*unused*/, const PGresult* /*notice*/) {}

template <class Throwing>
std::exception_ptr failureOf(Throwing throwing) {
  try {
    throwing();
  } catch (const Error&) {
    return std::current_exception();
  }
  return nullptr;
}

// `number` is what whoever accepted the connection calls the session: a pooler's is none of a server's
// process. In a transaction, so that nothing is read by another search_path, and nothing stays with a
// pooler's session.
std::string question(int number, bool asksTimeline, const std::string& pins) {
  const std::string isDirect = "pg_backend_pid() = " + std::to_string(number);
  return "BEGIN; SET LOCAL search_path = pg_catalog; SELECT " + isDirect +
         ", NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off', "
         "current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on', "
         "current_setting('synchronous_commit') IN ('on', 'remote_apply') AND "
         "current_setting('synchronous_standby_names') <> '', (SELECT count(*) FROM pg_stat_replication), " +
         std::string(asksTimeline ? "CASE WHEN NOT pg_is_in_recovery() THEN "
                                    "substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END"
                                  : "''") +
         ", CASE WHEN " + isDirect + " THEN ROW(" + pins +
         ") END, (SELECT '(a.pid = ' || pg_backend_pid() || ' AND extract(epoch FROM a.backend_start) = ' || "
         "extract(epoch FROM b.backend_start) || ')' FROM pg_stat_activity AS b WHERE b.pid = "
         "pg_backend_pid()), extract(epoch FROM pg_postmaster_start_time())::text, " +
         serverTime + "; COMMIT";
}

}  // namespace

HostLogIn::HostLogIn(const ServerLogin& login, std::size_t host, const std::string& pins, const Clock& clock,
                     Instant until)
    : login_(login), host_(host), pins_(pins), clock_(clock), until_(until), addressUntil_(until) {
  const std::exception_ptr failure = failureOf([this] {
    lookUp();
    connectNext();
  });
  if (!failure) return;
  failure_ = failure;
  state_ = State::failed;
}

void HostLogIn::lookUp() {
  if (!login_.socket.empty()) {
    addresses_.emplace_back();
    return;
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(login_.hosts[host_].host.c_str(), nullptr, &hints, &found);
  if (error != 0) throw StoreUnavailable(display() + ": " + ::gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(each->ai_addr, each->ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) == 0)
      addresses_.insert(addresses_.begin(), text);
  }
  if (addresses_.empty()) throw StoreUnavailable(display() + ": its host has no address");
}

void HostLogIn::connectNext() {
  const Instant now = clock_.now();
  addressUntil_ = now + (until_ - now) / static_cast<Instant::rep>(addresses_.size());
  const std::string address = addresses_.back();
  addresses_.pop_back();
  const auto parameters = parametersOf(login_, login_.hosts[host_], address);
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
  if (PQstatus(handle_.get()) == CONNECTION_BAD) fail();
}

pollfd HostLogIn::waitsFor() const {
  return {.fd = PQsocket(handle_.get()), .events = events_, .revents = 0};
}

void HostLogIn::proceed() {
  if (ended()) return;
  pollfd socket = waitsFor();
  if (::poll(&socket, 1, 0) > 0) goOn();
  if (!ended() && clock_.now() >= addressUntil_) fail("no answer in time");
}

void HostLogIn::goOn() {
  if (state_ == State::asking) return readFacts();
  switch (PQconnectPoll(handle_.get())) {
    case PGRES_POLLING_OK:
      return connected();
    case PGRES_POLLING_FAILED:
      return fail();
    case PGRES_POLLING_READING:
      events_ = POLLIN;
      return;
    default:
      events_ = POLLOUT;
  }
}

void HostLogIn::connected() {
  if (const int version = PQserverVersion(handle_.get()); version < oldestVersion)
    return refuse("PostgreSQL " + std::to_string(version / 10000) + " is too old: 14 or later is needed");
  state_ = State::asking;
  events_ = POLLIN;
  PQsetErrorVerbosity(handle_.get(), PQERRORS_DEFAULT);
  const std::string text = question(PQbackendPID(handle_.get()), login_.hosts.size() > 1, pins_);
  const bool isSent = PQsetnonblocking(handle_.get(), 1) == 0 &&
                      PQsendQuery(handle_.get(), text.c_str()) == 1 && PQflush(handle_.get()) >= 0;
  if (!isSent) fail();
}

void HostLogIn::readFacts() {
  if (PQconsumeInput(handle_.get()) == 0 || PQflush(handle_.get()) < 0) return fail();
  while (PQisBusy(handle_.get()) == 0) {
    PGresult* const next = PQgetResult(handle_.get());
    if (next == nullptr) return judge();
    Result result(next);
    if (result.isFault()) return fail(failureOf([&] { throwFault(next, {.display = display()}); }));
    if (result.columns() > 0) answer_.emplace(std::move(result));
  }
}

void HostLogIn::judge() {
  if (!answer_) return fail("no answer");
  const Result& result = *answer_;
  facts_.isDirect = result.isTrue(0, 0);
  if (facts_.isDirect) facts_.backend = result.text(0, 7);
  if (facts_.isDirect && facts_.backend.empty())
    return refuse("the role does not see its own session in pg_stat_activity");
  if (!result.isTrue(0, 1))
    return fail(std::make_exception_ptr(
        NotPrimary(display() + " takes no writes, as a standby: the server that does is needed")));
  facts_.survivesCrash = result.isTrue(0, 2);
  const bool hasStandbys = login_.hosts.size() > 1 || result.number(0, 4) > 0;
  facts_.mayLag = hasStandbys && !result.isTrue(0, 3);
  facts_.started = result.text(0, 8);
  facts_.time = {.value = result.number(0, 9), .heardAt = clock_.now()};
  const std::string_view timeline = result.text(0, 5);
  std::from_chars(timeline.data(), timeline.data() + timeline.size(), facts_.timeline, 16);
  state_ = State::done;
  failure_ = nullptr;
}

void HostLogIn::refuse(const std::string& words) {
  addresses_.clear();
  fail(std::make_exception_ptr(ConfigError(display() + ": " + words)));
}

void HostLogIn::fail(std::exception_ptr failure) {
  failure_ = std::move(failure);
  state_ = State::failed;
  handle_.reset();
  answer_.reset();
  facts_ = {};
  if (!addresses_.empty() && clock_.now() < until_) connectNext();
}

void HostLogIn::fail(const std::string& words) {
  fail(failureOf([&] { throwLogInFault(words, display()); }));
}

void HostLogIn::fail() { fail(PQerrorMessage(handle_.get())); }

}  // namespace lockkeeper::libpq
