#include "lockkeeper/mysql/server_rows.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <variant>

#include "hosts/session_opener.h"
#include "hosts/session_pool.h"
#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/base/key.h"
#include "lockkeeper/duration.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/check_range.h"
#include "lockkeeper/internal/whole_number.h"
#include "session/reply_fault.h"
#include "session/statements/held_rows.h"
#include "session/statements/sql_text.h"

namespace lockkeeper::mysql {
namespace {

constexpr std::size_t mostRowSessions = 256;
constexpr std::chrono::seconds shortestTimeout{1};
constexpr std::chrono::seconds longestOperation{std::chrono::hours{1}};

const ServerRowsOptions& checked(const ServerRowsOptions& options) {
  checkRange("sessions", options.sessions, 1, mostRowSessions);
  if (!options.table.empty()) checkName("the table name", options.table, "");
  // Not by checkDuration(): not all seconds have their milliseconds.
  if (options.operationTimeout < shortestTimeout || options.operationTimeout > longestOperation) {
    throw std::invalid_argument("operationTimeout is " + std::to_string(options.operationTimeout.count()) +
                                "s: it must be " + formatDuration(shortestTimeout) + " to " +
                                formatDuration(longestOperation));
  }
  return options;
}

/// The session ended before COMMIT was sent.
class LostSession : public StoreUnavailable {
 public:
  using StoreUnavailable::StoreUnavailable;
};

SqlValue valueIn(const std::optional<std::string>& field, Reply::Type type) {
  if (!field) return std::monostate();
  if (type == Reply::Type::integer) {
    if (const auto number = wholeNumber<std::int64_t>(*field)) return *number;
  }
  if (type == Reply::Type::floating) {
    if (const auto number = wholeNumber<double>(*field)) return *number;
  }
  return *field;
}

std::string literal(double number) {
  std::array<char, 32> text{};
  // With an exponent, or the server would take it for a decimal.
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::scientific);
  return std::string(text.data(), end.ptr);
}

std::string literal(const SqlValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* number = std::get_if<double>(&value)) return literal(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return textLiteral(*text);
  return "NULL";
}

/// The statement with a literal in the place of each '?' that stands outside of quotes.
std::string withValues(const std::string& statement, const SqlRow& values) {
  std::string text;
  std::size_t used = 0;
  char quote = 0;
  for (const char c : statement) {
    if (quote == 0 && c == '?') {
      if (used == values.size()) break;
      text += literal(values[used++]);
      continue;
    }
    if (quote == 0 && (c == '\'' || c == '"' || c == '`')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    }
    text += c;
  }
  if (used == values.size()) return text;
  throw std::invalid_argument(std::to_string(values.size()) + " values are given for: " + statement);
}

SqlRow rowIn(const Reply& reply, std::size_t index) {
  SqlRow row;
  row.reserve(reply.types.size());
  for (std::size_t i = 0; i < reply.types.size(); ++i) {
    row.push_back(valueIn(reply.rows[index].at(i), reply.types[i]));
  }
  return row;
}

}  // namespace

class ServerRows::Impl {
 public:
  Impl(const StoreUri& uri, const ServerRowsOptions& options, const Environment& environment)
      : timeout(options.operationTimeout),
        opener(read(uri, options),
               {.rules = {.isolation = SessionRules::Isolation::repeatableRead,
                          .longestWait = options.operationTimeout},
                .readTable = readsTable(options.table)},
               environment),
        pool(opener, options.sessions) {}

  Instant deadlineIn(int timeouts, Instant latest) {
    return std::min(saturatingAdd(opener.clock().now(), timeouts * timeout), latest);
  }

  const ForkGuard forkGuard;
  const std::chrono::seconds timeout;
  SessionOpener opener;
  SessionPool pool;

 private:
  static std::string readsTable(const std::string& table) {
    return table.empty() ? "" : "SELECT 1 FROM `" + table + "` LIMIT 1";
  }
  static ServerOptions read(const StoreUri& uri, const ServerRowsOptions& options) {
    allowOnly(uri, {});
    ServerOptions server = ServerOptions::fromUri(uri);
    server.connectTimeout = options.operationTimeout;
    return server;
  }
};

class ServerRows::Transaction::State {
 public:
  State(Impl& impl, Instant latest, Access access)
      : impl_(impl),
        access_(access),
        latest_(latest),
        use_(impl.pool, impl.deadlineIn(1, latest)),
        deadline_(impl.deadlineIn(2, latest)) {
    if (access == Access::snapshot) use_.expectSlowAnswers();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    const bool clean =
        stage_ == Stage::open && use_.session().query(ending("ROLLBACK"), deadline_).error == 0;
    if (clean || stage_ == Stage::fresh) use_.keep();
  }

  bool inherited() const { return impl_.forkGuard.inherited(); }

  const Reply& ask(const std::string& statement, const SqlRow& values) {
    return ask(withValues(statement, values));
  }

  const Reply& ask(std::span<const SqlStatement> statements) {
    std::string text;
    for (const SqlStatement& each : statements) {
      if (!text.empty()) text += ';';
      text += withValues(each.text, each.values);
    }
    return ask(text);
  }

  const Reply& ask(const std::string& text) {
    refuseOver();
    if (access_ == Access::snapshot) deadline_ = impl_.deadlineIn(2, latest_);
    try {
      const bool begins = std::exchange(stage_, Stage::over) == Stage::fresh;
      const Reply& reply = use_.ask(begins ? beginning() + text : text, deadline_);
      stage_ = access_ == Access::read ? Stage::fresh : Stage::open;
      return reply;
    } catch (const OutcomeUnknown& lost) {
      if (access_ == Access::snapshot && use_.clock().now() >= deadline_) throw StoreUnavailable(lost.what());
      throw LostSession(lost.what());
    }
  }

  void commit() {
    refuseOver();
    if (std::exchange(stage_, Stage::over) == Stage::open) {
      refuseEnded();
      use_.ask(ending("COMMIT"), deadline_);
    }
    use_.keep();
  }

 private:
  enum class Stage { fresh, open, over /* and the session kept or not, as it should be */ };

  std::string beginning() const {
    if (access_ == Access::read) return "";
    // In front of statements that are not ours and may end with anything.
    const std::string limit = idleLimit(impl_.timeout) + ";";
    if (access_ == Access::write) return "START TRANSACTION;" + limit;
    return limit +
           "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;"
           "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY;";
  }

  static std::string ending(const char* statement) { return noIdleLimit + (std::string(";") + statement); }

  // What followed would be committed statement by statement, without what came before.
  void refuseOver() const {
    impl_.forkGuard.check();
    if (stage_ == Stage::over)
      throw StoreUnavailable("this transaction is over: it was committed, or has failed");
  }

  // No reply is due: what can be read is the session's end, by the limit of a transaction that was silent. A
  // COMMIT would leave a doubt for nothing.
  void refuseEnded() {
    if (use_.session().readable() || use_.clock().now() >= deadline_) {
      throw LostSession(impl_.opener.display() + ": the session ended before COMMIT was sent");
    }
  }

  Impl& impl_;
  const Access access_;
  const Instant latest_;
  SessionPool::Use use_;
  Instant deadline_;
  Stage stage_ = Stage::fresh;
};

ServerRows::Transaction::Transaction(std::unique_ptr<State> state) : state_(std::move(state)) {}
ServerRows::Transaction::Transaction(Transaction&&) noexcept = default;
ServerRows::Transaction::~Transaction() {
  // It is the parent's, as its session is.
  if (state_ && state_->inherited()) static_cast<void>(state_.release());
}

std::optional<SqlRow> ServerRows::Transaction::select(const std::string& statement, const SqlRow& values) {
  const Reply& reply = state_->ask(statement, values);
  return reply.rows.empty() ? std::nullopt : std::optional(rowIn(reply, 0));
}

std::vector<SqlRow> ServerRows::Transaction::selectAll(const std::string& statement, const SqlRow& values) {
  const Reply& reply = state_->ask(statement, values);
  std::vector<SqlRow> rows;
  rows.reserve(reply.rows.size());
  for (std::size_t i = 0; i < reply.rows.size(); ++i) rows.push_back(rowIn(reply, i));
  return rows;
}

std::size_t ServerRows::Transaction::execute(const std::string& statement, const SqlRow& values) {
  return state_->ask(statement, values).changed;
}

std::size_t ServerRows::Transaction::execute(std::span<const SqlStatement> statements) {
  return state_->ask(statements).changed;
}

void ServerRows::Transaction::commit() { state_->commit(); }

ServerRows::ServerRows(const StoreUri& uri, const ServerRowsOptions& options, const Environment& environment)
    : impl_(std::make_unique<Impl>(uri, checked(options), environment)) {}
ServerRows::~ServerRows() {
  // Closing an inherited session properly would close the parent's: leaking it is right.
  if (impl_->forkGuard.inherited()) static_cast<void>(impl_.release());
}

ServerRows::Transaction ServerRows::begin(Instant latest, Access access) {
  impl_->forkGuard.check();
  return Transaction(std::make_unique<Transaction::State>(*impl_, latest, access));
}

bool ServerRows::isContention(const std::exception& failure) {
  return dynamic_cast<const Contention*>(&failure) != nullptr;
}

bool ServerRows::isLostSession(const std::exception& failure) {
  return dynamic_cast<const LostSession*>(&failure) != nullptr ||
         dynamic_cast<const NotPrimary*>(&failure) != nullptr;
}

const std::string& ServerRows::display() const { return impl_->opener.display(); }

}  // namespace lockkeeper::mysql
