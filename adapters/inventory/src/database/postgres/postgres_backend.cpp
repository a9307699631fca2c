#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "database/backend.h"
#include "database/postgres/literals.h"
#include "database/postgres/server.h"
#include "lockkeeper/base/fork_guard.h"
#include "lockkeeper/error.h"
#include "lockkeeper/libpq/log_in.h"

namespace lockkeeper::inventory {
namespace {

using libpq::LostSession;
using libpq::NotPrimary;
using libpq::Result;

struct PostgresSession {
  libpq::Connection connection;
  const bool isDirect;  ///< No pooler gives our statements to sessions of its own.
};

/// A bounded number of sessions, opened when needed. Transactions of several round trips; the server ends the
/// session of one that it hears nothing of for operationTimeout.
class PostgresBackend final : public Backend {
 public:
  PostgresBackend(std::string_view uri, const StockOptions& options)
      : server_(PostgresServer::fromUri(StoreUri::parse(uri))), options_(options) {
    idle_.reserve(options_.sessions);  // A session can be put back where no memory is left.
  }
  PostgresBackend(const PostgresBackend&) = delete;
  PostgresBackend& operator=(const PostgresBackend&) = delete;
  ~PostgresBackend() override {
    // Closing an inherited session properly would close the parent's: leaking it is right.
    for (auto& each : idle_) {
      if (forkGuard_.inherited()) static_cast<void>(each.release());
    }
  }

  Dialect dialect() const override { return Dialect::postgres; }
  const std::string& display() const override { return server_.display; }
  Transaction begin(Access access, Instant latest) override;
  Fault faultOf(const std::exception& failure) const override {
    if (dynamic_cast<const libpq::Contention*>(&failure) != nullptr) return Fault::contention;
    const bool isLost = dynamic_cast<const LostSession*>(&failure) != nullptr ||
                        dynamic_cast<const NotPrimary*>(&failure) != nullptr;
    return isLost ? Fault::lostSession : Fault::final;
  }

 private:
  class Open;

  Clock& clock() const { return *options_.environment.clock; }
  Instant deadlineIn(int timeouts, Instant latest) const {
    return std::min(saturatingAdd(clock().now(), timeouts * options_.operationTimeout), latest);
  }
  std::unique_ptr<PostgresSession> take(Instant until);
  std::unique_ptr<PostgresSession> logIn(Instant until);
  std::unique_ptr<PostgresSession> takeIdle();
  void putBack(std::unique_ptr<PostgresSession> session) noexcept;
  void closeIdle();

  const ForkGuard forkGuard_{};
  const PostgresServer server_;
  const StockOptions options_;

  std::mutex mutex_{};
  std::condition_variable returned_{};
  std::vector<std::unique_ptr<PostgresSession>> idle_{};
  std::size_t used_ = 0;
};

/// A transaction, with the session that it has for itself. Whatever fails has undone it.
class PostgresBackend::Open final : public Transaction::Session {
 public:
  Open(PostgresBackend& backend, Access access, Instant latest)
      : backend_(backend),
        access_(access),
        latest_(latest),
        session_(backend.take(backend.deadlineIn(1, latest))),
        deadline_(backend.deadlineIn(2, latest)) {}
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;
  ~Open() override {
    if (stage_ == Stage::open) {
      try {
        (void)session_->connection.ask("ROLLBACK", deadline_);
      } catch (const std::exception&) {  // Closing it rolls back as well.
        session_.reset();
      }
    }
    backend_.putBack(std::move(session_));
  }

  std::optional<mysql::SqlRow> select(const std::string& statement, const mysql::SqlRow& values) override {
    const auto results = ask(withLiterals(statement, values));
    const Result& result = results.back();
    return result.rows() == 0 ? std::nullopt : std::optional(sqlRowIn(result, 0));
  }
  std::vector<mysql::SqlRow> selectAll(const std::string& statement, const mysql::SqlRow& values) override {
    const auto results = ask(withLiterals(statement, values));
    const Result& result = results.back();
    std::vector<mysql::SqlRow> rows;
    rows.reserve(result.rows());
    for (std::size_t row = 0; row < result.rows(); ++row) rows.push_back(sqlRowIn(result, row));
    return rows;
  }
  std::size_t execute(const std::string& statement, const mysql::SqlRow& values) override {
    return changedBy(ask(withLiterals(statement, values)));
  }
  std::size_t execute(std::span<const mysql::SqlStatement> statements) override {
    std::string text;
    for (const mysql::SqlStatement& each : statements) {
      if (!text.empty()) text += ';';
      text += withLiterals(each.text, each.values);
    }
    return changedBy(ask(text));
  }
  void commit() override;
  std::string clock() const override { return "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"; }

 private:
  enum class Stage { fresh, open, over };

  /// The results of these statements, without those of what stands around them.
  std::vector<Result> ask(const std::string& statements);
  std::string beginning() const;
  void refuseOver() const;

  PostgresBackend& backend_;
  const Access access_;
  const Instant latest_;
  std::unique_ptr<PostgresSession> session_;
  Instant deadline_;
  Stage stage_ = Stage::fresh;
};

std::vector<Result> PostgresBackend::Open::ask(const std::string& statements) {
  refuseOver();
  if (access_ == Access::snapshot) deadline_ = backend_.deadlineIn(2, latest_);
  const bool begins = std::exchange(stage_, Stage::over) == Stage::fresh;
  const std::string before = begins ? beginning() : "";
  const bool ends = access_ == Access::read && !before.empty();
  try {
    auto results = session_->connection.ask(before + statements + (ends ? ";COMMIT" : ""), deadline_);
    if (ends) results.pop_back();
    if (!before.empty()) results.erase(results.begin(), results.begin() + (session_->isDirect ? 1 : 2));
    stage_ = access_ == Access::read ? Stage::fresh : Stage::open;
    return results;
  } catch (const NotPrimary&) {
    backend_.closeIdle();
    session_.reset();
    throw;
  } catch (const LostSession& lost) {
    // It takes long because there is much to read: no reason to try it again.
    if (access_ == Access::snapshot && backend_.clock().now() >= deadline_)
      throw StoreUnavailable(lost.what());
    throw;
  }
}

/// A pooler's session is not pinned, so that each transaction is.
std::string PostgresBackend::Open::beginning() const {
  const bool isDirect = session_->isDirect;
  if (access_ == Access::read && isDirect) return "";
  const std::string pins =
      isDirect ? "" : "SELECT " + backend_.server_.pins(backend_.options_.operationTimeout, true) + ";";
  if (access_ == Access::snapshot) return "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY;" + pins;
  return "BEGIN ISOLATION LEVEL READ COMMITTED;" + pins;
}

// What followed would be committed statement by statement, without what came before.
void PostgresBackend::Open::refuseOver() const {
  if (stage_ == Stage::over)
    throw StoreUnavailable("this transaction is over: it was committed, or has failed");
}

// No answer is due: what can be read is the session's end, by the limit of a transaction that was silent. A
// COMMIT would leave a doubt for nothing.
void PostgresBackend::Open::commit() {
  refuseOver();
  if (std::exchange(stage_, Stage::over) == Stage::fresh) return;
  const std::string& display = backend_.display();
  if (!session_->connection.usable() || backend_.clock().now() >= deadline_) {
    session_.reset();
    throw LostSession(display + ": the session ended before COMMIT was sent");
  }
  try {
    const auto results = session_->connection.ask("COMMIT", deadline_);
    // The answer to the COMMIT of a transaction that has failed is ROLLBACK.
    if (results.back().command() != "COMMIT")
      throw StoreUnavailable(display + ": the server has rolled back instead of committing");
  } catch (const LostSession& lost) {
    if (!session_->connection.mayHaveApplied()) throw;
    throw OutcomeUnknown(lost.what());
  }
  if (session_->connection.hasWarned())
    throw OutcomeUnknown(display + ": the server warns that the commit may not have reached a standby");
}

Transaction PostgresBackend::begin(Access access, Instant latest) {
  return Transaction(std::make_unique<Open>(*this, access, latest));
}

std::unique_ptr<PostgresSession> PostgresBackend::take(Instant until) {
  {
    std::unique_lock held(mutex_);
    while (used_ >= options_.sessions) {
      if (clock().now() >= until) {
        throw StoreUnavailable(display() + ": all " + std::to_string(options_.sessions) +
                               " sessions stayed in use");
      }
      clock().wait(held, returned_, until);
    }
    ++used_;
  }
  try {
    std::unique_ptr<PostgresSession> session = takeIdle();
    return session ? std::move(session) : logIn(until);
  } catch (...) {
    putBack(nullptr);
    throw;
  }
}

std::unique_ptr<PostgresSession> PostgresBackend::logIn(Instant until) {
  libpq::LoggedIn logIn =
      libpq::logIn(server_, {}, server_.pins(options_.operationTimeout, false), clock(), until);
  return std::unique_ptr<PostgresSession>(
      new PostgresSession{.connection{std::move(logIn.handle),
                                      {.display = display(), .valuesAreChecked = true},
                                      options_.environment.clock},
                          .isDirect = logIn.facts.isDirect});
}

std::unique_ptr<PostgresSession> PostgresBackend::takeIdle() {
  std::vector<std::unique_ptr<PostgresSession>> dead;  // Closed without the mutex.
  const std::lock_guard held(mutex_);
  while (!idle_.empty()) {
    auto session = std::move(idle_.back());
    idle_.pop_back();
    if (session->connection.usable()) return session;
    dead.push_back(std::move(session));
  }
  return nullptr;
}

void PostgresBackend::putBack(std::unique_ptr<PostgresSession> session) noexcept {
  if (session && !session->connection.usable()) session.reset();
  {
    const std::lock_guard held(mutex_);
    --used_;
    if (session) idle_.push_back(std::move(session));
  }
  returned_.notify_one();
}

/// Their server takes no writes any more.
void PostgresBackend::closeIdle() {
  std::vector<std::unique_ptr<PostgresSession>> dead;
  const std::lock_guard held(mutex_);
  dead.swap(idle_);
  idle_.reserve(options_.sessions);
}

}  // namespace

std::unique_ptr<Backend> makePostgresBackend(std::string_view uri, const StockOptions& options) {
  return std::make_unique<PostgresBackend>(uri, options);
}

}  // namespace lockkeeper::inventory
