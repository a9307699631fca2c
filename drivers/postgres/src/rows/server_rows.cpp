#include "lockkeeper/postgres/server_rows.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <variant>

#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/check_range.h"
#include "lockkeeper/internal/whole_number.h"
#include "lockkeeper/libpq/rows.h"
#include "lockkeeper/postgres/row_statement.h"
#include "session/fault.h"
#include "session/server_options.h"
#include "session/sessions.h"

namespace lockkeeper::postgres {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t mostRowSessions = 256;
constexpr std::chrono::seconds shortestOperation{1};
// A transaction takes twice as long at most, and the server ends a statement after 30 s.
constexpr std::chrono::seconds longestOperation{15};

const ServerRowsOptions& checkedRows(const ServerRowsOptions& options) {
  checkRange("sessions", options.sessions, 1, mostRowSessions);
  // Not by checkDuration(): not all seconds have their milliseconds.
  if (options.operationTimeout < shortestOperation || options.operationTimeout > longestOperation) {
    throw std::invalid_argument("operationTimeout is " + std::to_string(options.operationTimeout.count()) +
                                "s: it must be " + formatDuration(shortestOperation) + " to " +
                                formatDuration(longestOperation));
  }
  return options;
}

ServerOptions rowServerOptions(const StoreUri& uri, const ServerRowsOptions& rows) {
  uri.allowOnly({"caFile", "certFile", "keyFile", "passwordFile", "schema", "socket", "tls", "verify"});
  ServerOptions options = ServerOptions::fromUri(uri, {});
  options.connections = rows.sessions;
  options.connectTimeout = rows.operationTimeout;
  return options;
}

// What is not as the driver's own statements need it. The last three decide how values are written as text.
std::string rowSettings(const std::string& schema, std::chrono::seconds operationTimeout) {
  const std::string limit = std::to_string(operationTimeout.count()) + "s";
  return "SELECT set_config('search_path', '\"" + schema + "\"', true), set_config('lock_timeout', '" +
         limit + "', true), set_config('idle_in_transaction_session_timeout', '" + limit +
         "', true), set_config('extra_float_digits', '1', true), set_config('bytea_output', 'hex', true), "
         "set_config('DateStyle', 'ISO', true), set_config('IntervalStyle', 'postgres', true)";
}

// The numbers of types, which no server changes.
bool isFloating(unsigned type) { return type == 700 || type == 701; }

SqlValue sqlValueIn(const Result& result, std::size_t row, std::size_t column) {
  if (isFloating(result.typeOf(column))) {
    if (const auto number = wholeNumber<double>(result.text(row, column))) return *number;
  }
  return libpq::valueIn(result, row, column);
}

SqlRow sqlRowIn(const Result& result, std::size_t row) {
  SqlRow values;
  for (std::size_t column = 0; column < result.columns(); ++column)
    values.push_back(sqlValueIn(result, row, column));
  return values;
}

Value boundValue(const SqlValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  if (const auto* number = std::get_if<double>(&value)) {
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), *number);
    return std::string(text.data(), end.ptr);
  }
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return nullptr;
  // The client library would cut it there in silence.
  if (text->find('\0') != std::string::npos)
    throw std::invalid_argument(
        "a value has a NUL: texts of PostgreSQL have none, and bytes are written as \\x "
        "and hexadecimal digits");
  return *text;
}

}  // namespace

class ServerRows::Impl {
 public:
  Impl(const StoreUri& uri, const ServerRowsOptions& options, const Environment& environment)
      : timeout(options.operationTimeout), sessions(rowServerOptions(uri, options), {}, environment) {}

  Instant deadlineIn(int timeouts) { return saturatingAdd(sessions.clock().now(), timeouts * timeout); }

  const ForkGuard forkGuard;
  const std::chrono::seconds timeout;
  Sessions sessions;
  const std::string settings = rowSettings(sessions.options().schema, timeout);
};

class ServerRows::Transaction::State {
 public:
  explicit State(Impl& impl)
      : impl_(impl), use_(impl.sessions.use(impl.deadlineIn(1))), deadline_(impl.deadlineIn(2)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (stage_ != Stage::open) return;
    try {
      static_cast<void>(use_->command("ROLLBACK", deadline_));
    } catch (const std::exception&) {
      // The session is closed, and its server rolls back.
    }
  }

  bool inherited() const { return impl_.forkGuard.inherited(); }

  Result ask(const std::string& statement, const SqlRow& values) {
    refuseOver();
    const std::string text = numbered(statement, values.size());
    Statement asked{text};
    for (const SqlValue& each : values) asked.values.push_back(boundValue(each));
    try {
      Result result = std::exchange(stage_, Stage::over) == Stage::fresh ? begun(std::move(asked))
                                                                         : use_->proceed(asked, deadline_);
      stage_ = Stage::open;
      return result;
    } catch (const OutcomeUnknown& lost) {
      throw StoreUnavailable(lost.what());  // COMMIT was not sent.
    } catch (const NotPrimary&) {
      impl_.sessions.forgetPrimary();
      throw;
    }
  }

  void commit() {
    refuseOver();
    if (std::exchange(stage_, Stage::over) != Stage::open) return;
    // No answer is due: what can be read is the session's end. A COMMIT would leave a doubt for nothing.
    if (!use_->usable() || impl_.sessions.clock().now() >= deadline_)
      throw StoreUnavailable(impl_.sessions.options().display + ": the session ended before COMMIT was sent");
    static_cast<void>(use_->command("COMMIT", deadline_));
  }

 private:
  enum class Stage { fresh, open, over };

  Result begun(Statement asked) {
    const std::vector<Statement> statements{{impl_.settings}, std::move(asked)};
    return std::move(use_->begin(statements, deadline_).back());
  }

  // What followed would be committed statement by statement, without what came before.
  void refuseOver() const {
    impl_.forkGuard.check();
    if (stage_ == Stage::over)
      throw StoreUnavailable("this transaction is over: it was committed, or has failed");
  }

  Impl& impl_;
  Sessions::Use use_;
  const Instant deadline_;
  Stage stage_ = Stage::fresh;
};

ServerRows::Transaction::Transaction(std::unique_ptr<State> state) : state_(std::move(state)) {}
ServerRows::Transaction::Transaction(Transaction&&) noexcept = default;
ServerRows::Transaction::~Transaction() {
  // It is the parent's, as its session is.
  if (state_ && state_->inherited()) static_cast<void>(state_.release());
}

std::optional<SqlRow> ServerRows::Transaction::select(const std::string& statement, const SqlRow& values) {
  const Result result = state_->ask(statement, values);
  return result.rows() == 0 ? std::nullopt : std::optional(sqlRowIn(result, 0));
}

std::vector<SqlRow> ServerRows::Transaction::selectAll(const std::string& statement, const SqlRow& values) {
  const Result result = state_->ask(statement, values);
  std::vector<SqlRow> rows;
  for (std::size_t row = 0; row < result.rows(); ++row) rows.push_back(sqlRowIn(result, row));
  return rows;
}

std::size_t ServerRows::Transaction::execute(const std::string& statement, const SqlRow& values) {
  return state_->ask(statement, values).changed();
}

void ServerRows::Transaction::commit() { state_->commit(); }

ServerRows::ServerRows(const StoreUri& uri, const ServerRowsOptions& options, const Environment& environment)
    : impl_(std::make_unique<Impl>(uri, checkedRows(options), environment)) {}
ServerRows::~ServerRows() {
  // Closing an inherited session properly would close the parent's: leaking it is right.
  if (impl_->forkGuard.inherited()) static_cast<void>(impl_.release());
}

ServerRows::Transaction ServerRows::begin() {
  impl_->forkGuard.check();
  return Transaction(std::make_unique<Transaction::State>(*impl_));
}

bool ServerRows::isContention(const std::exception& failure) {
  return dynamic_cast<const Contention*>(&failure) != nullptr;
}

const std::string& ServerRows::display() const { return impl_->sessions.options().display; }

}  // namespace lockkeeper::postgres
