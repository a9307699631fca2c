#include "session/session.h"

#include <libpq-fe.h>

#include <optional>
#include <utility>

#include "lockkeeper/error.h"
#include "lockkeeper/libpq/settings.h"

namespace lockkeeper::postgres {
namespace {

// A standby refuses the second half.
constexpr std::string_view beginning = "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE";

// What a statement's values may have together if it is sent with those behind it.
constexpr std::size_t shortStatement = 2048;
// The clocks of two machines run apart by less than a millisecond in it.
constexpr std::chrono::seconds timeIsGood{10};

bool isLong(const Statement& statement) {
  std::size_t bytes = 0;
  for (const Value& each : statement.values) bytes += each.data ? each.data->size() : 0;
  return bytes > shortStatement;
}

bool isCopy(const Result& result) {
  const auto status = PQresultStatus(result.get());
  return status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH;
}

/// What `call` returns.
template <class Call>
auto orUnknown(const libpq::Connection& connection, Call call) {
  try {
    return call();
  } catch (const libpq::LostSession& lost) {
    if (connection.mayHaveApplied()) throw OutcomeUnknown(lost.what());
    throw;
  }
}

}  // namespace

Session::Session(libpq::LoggedIn logIn, libpq::StoreFaults store, std::shared_ptr<Clock> clock)
    : facts_(std::move(logIn.facts)),
      display_(store.display),
      clock_(clock),
      connection_(std::move(logIn.handle), std::move(store), std::move(clock)),
      time_(facts_.time) {}

std::string Session::pins(bool isLocal) {
  return libpq::pinning({{"role", "none"},
                         {"search_path", "pg_catalog"},
                         {"lock_timeout", "1s"},
                         {"statement_timeout", "30s"},
                         {"idle_in_transaction_session_timeout", "5s"},
                         {"transaction_timeout", "30s"},
                         {"TimeZone", "UTC"},
                         {"standard_conforming_strings", "on"}},
                        isLocal);
}

const std::string& Session::localPins() {
  static const auto& text = *new std::string("SELECT " + std::string(libpq::serverTime) + ", " + pins(true));
  return text;
}

Result Session::ask(const Statement& statement, Instant deadline) {
  return std::move(run({&statement, 1}, isDirect() ? Form::alone : Form::transaction, deadline).front());
}

std::vector<Result> Session::transact(std::span<const Statement> statements, Instant deadline) {
  return run(statements, Form::transaction, deadline);
}

std::vector<Result> Session::begin(std::span<const Statement> statements, Instant deadline) {
  return run(statements, Form::opening, deadline);
}

Result Session::proceed(const Statement& statement, Instant deadline) {
  return std::move(run({&statement, 1}, Form::step, deadline).front());
}

Result Session::command(const std::string& text, Instant deadline) {
  const Statement statement{text};
  return std::move(run({&statement, 1}, Form::alone, deadline).front());
}

Value Session::latest(Instant deadline) {
  using std::chrono::microseconds;
  if (isDirect()) return nullptr;
  if (clock_->now() > time_.heardAt + timeIsGood) {
    try {
      static_cast<void>(transact({}, deadline));
    } catch (const OutcomeUnknown& error) {
      throw StoreUnavailable(error.what());  // Nothing was asked for yet.
    }
  }
  return time_.value + std::chrono::floor<microseconds>(deadline - time_.heardAt).count();
}

std::vector<Result> Session::run(std::span<const Statement> statements, Form form, Instant until) {
  return orUnknown(connection_, [&] {
    connection_.start();
    send(statements, form, until);
    return receive(statements.size(), form, until);
  });
}

// What has no BEGIN is committed at the end of all, so nothing of it before that has arrived.
void Session::send(std::span<const Statement> statements, Form form, Instant until) {
  pg_conn* const handle = connection_.handle();
  const bool isPrepared = isDirect() && form != Form::opening && form != Form::step;
  preparing_.clear();
  for (const Statement& each : statements) {
    if (isPrepared && !each.values.empty() && !prepared_.contains(each.text))
      preparing_.push_back(prepared_.emplace(each.text, "lockkeeper_" + std::to_string(names_++)).first);
  }
  isPipeline_ = begins(form) || !preparing_.empty();
  if (isPipeline_) check(PQenterPipelineMode(handle));
  for (const auto& each : preparing_)
    check(PQsendPrepare(handle, each->second.c_str(), each->first.c_str(), 0, nullptr));
  if (!preparing_.empty()) connection_.flush(until);
  if (begins(form)) {
    connection_.setMayHaveApplied();
    sendOne({beginning}, false);
    if (!isDirect()) sendOne({localPins()}, false);
  }
  // While a client stands still in the middle of a transaction that it sends, no timeout of the server runs.
  // So what locks rows leaves together with the COMMIT, in less than the 8 KiB after which the library sends
  // a part.
  for (const Statement& each : statements) {
    sendOne(each, isPrepared && !each.values.empty());
    if (isLong(each)) connection_.flush(until);
  }
  if (form == Form::transaction) sendOne({"COMMIT"}, false);
  if (isPipeline_) check(PQpipelineSync(handle));
  connection_.flush(until);
  connection_.setMayHaveApplied();
}

void Session::sendOne(const Statement& statement, bool isPrepared) {
  std::vector<const char*> values;
  std::vector<int> lengths;
  std::vector<int> formats;
  for (const Value& each : statement.values) {
    values.push_back(each.data ? each.data->data() : nullptr);
    lengths.push_back(each.data ? static_cast<int>(each.data->size()) : 0);
    formats.push_back(each.isBinary ? 1 : 0);
  }
  const int count = static_cast<int>(values.size());
  pg_conn* const handle = connection_.handle();
  check(isPrepared ? PQsendQueryPrepared(handle, prepared_.find(statement.text)->second.c_str(), count,
                                         values.data(), lengths.data(), formats.data(), 0)
                   : PQsendQueryParams(handle, std::string(statement.text).c_str(), count, nullptr,
                                       values.data(), lengths.data(), formats.data(), 0));
}

std::vector<Result> Session::receive(std::size_t statements, Form form, Instant until) {
  const std::size_t before = preparing_.size() + (begins(form) ? (isDirect() ? 1 : 2) : 0);
  const std::size_t all = statements + before + (form == Form::transaction ? 1 : 0);
  std::vector<Result> results;
  std::optional<Result> fault;
  bool isOfBegin = false;
  for (std::size_t i = 0; i < all && connection_.isOpen(); ++i) {
    bool isDone = false;
    while (auto result = connection_.next(until)) {
      if (!result->isFault()) {
        isDone = true;
        if (i >= before && i < before + statements) {
          results.push_back(*std::move(result));
        } else if (result->columns() > 0) {
          time_ = {.value = result->number(0, 0), .heardAt = clock_->now()};  // With the pins.
        }
      } else if (isCopy(*result)) {
        connection_.lose("COPY is not supported");  // The library would return this result for ever.
      } else if (!fault && PQresultStatus(result->get()) != PGRES_PIPELINE_ABORTED) {
        isOfBegin = begins(form) && i == preparing_.size();
        fault = std::move(result);
      }
      if (!connection_.isOpen()) break;
    }
    if (!isDone && i < preparing_.size()) prepared_.erase(preparing_[i]);
  }
  if (isPipeline_ && connection_.isOpen() && !(fault && libpq::endsSession(fault->get()))) {
    static_cast<void>(connection_.next(until));
    check(PQexitPipelineMode(connection_.handle()));
  }
  if (isOfBegin && !libpq::endsSession(fault->get()))
    throw libpq::NotPrimary(display_ + ": the server accepts no transaction that writes");
  if (fault) connection_.fail(*fault, until);
  if (!connection_.isOpen()) connection_.lose();
  if (results.size() != statements) connection_.lose("an answer is missing");
  if (connection_.hasWarned() && form != Form::opening && form != Form::step)
    throw OutcomeUnknown(display_ + ": the server warns that the commit may not have reached a standby");
  return results;
}

void Session::awaitNotifications(
    const std::function<void(std::string_view channel, std::string_view text)>& notified, Instant until,
    int wakeUp) {
  pg_conn* const handle = connection_.handle();
  connection_.start();
  std::vector<pollfd> sockets{{.fd = PQsocket(handle), .events = POLLIN, .revents = 0},
                              {.fd = wakeUp, .events = POLLIN, .revents = 0}};
  libpq::pollUntil(sockets, *clock_, until);
  if (sockets[0].revents != 0) check(PQconsumeInput(handle));
  while (PGnotify* const each = PQnotifies(handle)) {
    notified(each->relname, each->extra);
    PQfreemem(each);
  }
}

}  // namespace lockkeeper::postgres
