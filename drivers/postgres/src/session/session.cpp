#include "session/session.h"

#include <libpq-fe.h>

#include <cstring>
#include <utility>

#include "lockkeeper/error.h"

namespace lockkeeper::postgres {
namespace {

// A standby refuses the second half.
constexpr std::string_view beginning = "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE";
constexpr std::string_view commits = "COMMIT";
constexpr std::string_view rollsBack = "ROLLBACK";

// What a statement's values may have together if it is sent with those behind it.
constexpr std::size_t shortStatement = 2048;
// The clocks of two machines run apart by less than a millisecond in it.
constexpr std::chrono::seconds timeIsGood{10};

const std::string& localPins() {
  static const auto& text = *new std::string("SELECT " + std::string(serverTime) + ", " + pins(true));
  return text;
}

bool isLong(const Statement& statement) {
  std::size_t bytes = 0;
  for (const Value& each : statement.values) bytes += each.data ? each.data->size() : 0;
  return bytes > shortStatement;
}

// The one warning that our statements can cause: somebody has ended the wait for a synchronous standby, and
// the server says that the commit has succeeded.
void noteWarning(void* warned, const PGresult* notice) {
  const char* const severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
  const char* const state = PQresultErrorField(notice, PG_DIAG_SQLSTATE);
  if (severity == nullptr || state == nullptr || std::strcmp(severity, "WARNING") != 0) return;
  if (std::strcmp(state, "01000") == 0) *static_cast<bool*>(warned) = true;
}

}  // namespace

Session::Session(Handle handle, const ServerFacts& facts, std::string display, std::string schemaFile,
                 std::shared_ptr<Clock> clock)
    : handle_(std::move(handle)),
      facts_(facts),
      display_(std::move(display)),
      schemaFile_(std::move(schemaFile)),
      clock_(std::move(clock)),
      time_(facts.time) {
  PQsetNoticeReceiver(connection(), noteWarning, &warned_);
}

Result Session::ask(const Statement& statement, Instant deadline) {
  return std::move(run({&statement, 1}, facts_.isDirect ? Form::alone : Form::transaction, deadline).front());
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

Result Session::command(std::string_view text, Instant deadline) {
  return std::move(run(std::vector<Statement>{{text}}, Form::alone, deadline).front());
}

Value Session::latest(Instant deadline) {
  using std::chrono::microseconds;
  if (facts_.isDirect) return nullptr;
  if (clock_->now() > time_.heardAt + timeIsGood) {
    try {
      static_cast<void>(transact({}, deadline));
    } catch (const OutcomeUnknown& error) {
      throw StoreUnavailable(error.what());  // Nothing was asked for yet.
    }
  }
  return time_.value + std::chrono::floor<microseconds>(deadline - time_.heardAt).count();
}

bool Session::usable() const {
  if (isLost_ || PQstatus(connection()) != CONNECTION_OK) return false;
  // No answer is due: what can be read is the session's end, or a notice of it.
  pollfd socket{.fd = PQsocket(connection()), .events = POLLIN, .revents = 0};
  return ::poll(&socket, 1, 0) == 0;
}

std::vector<Result> Session::run(std::span<const Statement> statements, Form form, Instant until) {
  effect_ = Effect::none;
  warned_ = false;
  if (isLost_) throw StoreUnavailable(display_ + ": the session has ended");
  send(statements, form, until);
  return receive(statements.size(), form, until);
}

// What has no BEGIN is committed at the end of all, so nothing of it before that has arrived.
void Session::send(std::span<const Statement> statements, Form form, Instant until) {
  const bool isPrepared = facts_.isDirect && form != Form::opening && form != Form::step;
  preparing_.clear();
  for (const Statement& each : statements) {
    if (isPrepared && !each.values.empty() && !prepared_.contains(each.text))
      preparing_.push_back(prepared_.emplace(each.text, "lockkeeper_" + std::to_string(names_++)).first);
  }
  isPipeline_ = begins(form) || !preparing_.empty();
  if (isPipeline_ && PQenterPipelineMode(connection()) == 0) lose(PQerrorMessage(connection()));
  for (const auto& each : preparing_) {
    if (PQsendPrepare(connection(), each->second.c_str(), each->first.c_str(), 0, nullptr) == 0)
      lose(PQerrorMessage(connection()));
  }
  if (!preparing_.empty()) flush(until);
  if (begins(form)) {
    effect_ = Effect::unknown;
    sendOne({beginning}, false);
    if (!facts_.isDirect) sendOne({localPins()}, false);
  }
  // While a client stands still in the middle of a transaction that it sends, no timeout of the server runs.
  // So what locks rows leaves together with the COMMIT, in less than the 8 KiB after which the library sends
  // a part.
  for (const Statement& each : statements) {
    sendOne(each, isPrepared && !each.values.empty());
    if (isLong(each)) flush(until);
  }
  if (form == Form::transaction) sendOne({commits}, false);
  if (isPipeline_ && PQpipelineSync(connection()) == 0) lose(PQerrorMessage(connection()));
  flush(until);
  effect_ = Effect::unknown;
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
  const int sent = isPrepared
                       ? PQsendQueryPrepared(connection(), prepared_.find(statement.text)->second.c_str(),
                                             count, values.data(), lengths.data(), formats.data(), 0)
                       : PQsendQueryParams(connection(), std::string(statement.text).c_str(), count, nullptr,
                                           values.data(), lengths.data(), formats.data(), 0);
  if (sent == 0) lose(PQerrorMessage(connection()));
}

void Session::flush(Instant until) {
  while (true) {
    const int left = PQflush(connection());
    if (left == 0) return;
    if (left < 0) lose(PQerrorMessage(connection()));
    await(POLLIN | POLLOUT, until);
    if (PQconsumeInput(connection()) == 0) lose(PQerrorMessage(connection()));
  }
}

std::vector<Result> Session::receive(std::size_t statements, Form form, Instant until) {
  const std::size_t before = preparing_.size() + (begins(form) ? (facts_.isDirect ? 1 : 2) : 0);
  const std::size_t all = statements + before + (form == Form::transaction ? 1 : 0);
  std::vector<Result> results;
  std::unique_ptr<Result> failed;  // Owns `fault`.
  const PGresult* fault = nullptr;
  bool isOfBegin = false;
  for (std::size_t i = 0; i < all; ++i) {
    bool isDone = false;
    while (PGresult* const each = next(until)) {
      Result result(each);
      const auto status = PQresultStatus(each);
      if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        isDone = true;
        if (i >= before && i < before + statements) {
          results.push_back(std::move(result));
        } else if (status == PGRES_TUPLES_OK) {
          time_ = {.value = result.number(0, 0), .heardAt = clock_->now()};  // With the pins.
        }
      } else if (fault == nullptr && status != PGRES_PIPELINE_ABORTED) {
        fault = each;
        isOfBegin = begins(form) && i == preparing_.size();
        failed = std::make_unique<Result>(std::move(result));
      }
      if (PQstatus(connection()) != CONNECTION_OK) break;
    }
    if (!isDone && i < preparing_.size()) prepared_.erase(preparing_[i]);
    if (PQstatus(connection()) != CONNECTION_OK) break;
  }
  if (fault != nullptr && (endsSession(fault) || PQstatus(connection()) != CONNECTION_OK)) {
    isLost_ = true;
    throwFault(fault, effect_, display_, schemaFile_);
  }
  if (PQstatus(connection()) != CONNECTION_OK) lose(PQerrorMessage(connection()));
  if (isPipeline_) {
    const Result end(next(until));
    if (PQexitPipelineMode(connection()) == 0) lose(PQerrorMessage(connection()));
  }
  if (fault != nullptr) {
    const Effect effect = effect_;
    try {
      if (form != Form::alone) command(rollsBack, until);
    } catch (const Error&) {
      isLost_ = true;
    }
    if (isOfBegin) throw NotPrimary(display_ + ": the server accepts no transaction that writes");
    throwFault(fault, effect, display_, schemaFile_);
  }
  if (results.size() != statements) lose("an answer is missing");
  if (warned_ && form != Form::opening && form != Form::step)
    throw OutcomeUnknown(display_ + ": the server warns that the commit may not have reached a standby");
  return results;
}

pg_result* Session::next(Instant until) {
  while (PQisBusy(connection()) != 0) {
    await(POLLIN, until);
    if (PQconsumeInput(connection()) == 0) break;  // The result says why.
  }
  return PQgetResult(connection());
}

void Session::await(short events, Instant until) {
  std::vector<pollfd> sockets{{.fd = PQsocket(connection()), .events = events, .revents = 0}};
  pollUntil(sockets, *clock_, until);
  if (sockets[0].revents == 0) lose("no answer in time");
}

void Session::lose(const std::string& words) {
  isLost_ = true;
  const std::string line = display_ + ": " + words.substr(0, words.find('\n'));
  if (effect_ == Effect::unknown) throw OutcomeUnknown(line);
  throw StoreUnavailable(line);
}

void Session::awaitNotifications(
    const std::function<void(std::string_view channel, std::string_view text)>& notified, Instant until,
    int wakeUp) {
  effect_ = Effect::none;
  std::vector<pollfd> sockets{{.fd = PQsocket(connection()), .events = POLLIN, .revents = 0},
                              {.fd = wakeUp, .events = POLLIN, .revents = 0}};
  pollUntil(sockets, *clock_, until);
  if (sockets[0].revents != 0 && PQconsumeInput(connection()) == 0) lose(PQerrorMessage(connection()));
  while (PGnotify* const each = PQnotifies(connection())) {
    notified(each->relname, each->extra);
    PQfreemem(each);
  }
}

}  // namespace lockkeeper::postgres
