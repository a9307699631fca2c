#include "database/backend.h"

namespace lockkeeper::inventory {
namespace {

class ServerSession final : public Transaction::Session {
 public:
  explicit ServerSession(mysql::ServerRows::Transaction transaction) : transaction_(std::move(transaction)) {}

  std::optional<mysql::SqlRow> select(const std::string& statement, const mysql::SqlRow& values) override {
    return transaction_.select(statement, values);
  }
  std::vector<mysql::SqlRow> selectAll(const std::string& statement, const mysql::SqlRow& values) override {
    return transaction_.selectAll(statement, values);
  }
  std::size_t execute(const std::string& statement, const mysql::SqlRow& values) override {
    return transaction_.execute(statement, values);
  }
  std::size_t execute(std::span<const mysql::SqlStatement> statements) override {
    return transaction_.execute(statements);
  }
  void commit() override { transaction_.commit(); }
  std::string clock() const override {
    return "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000)";
  }

 private:
  mysql::ServerRows::Transaction transaction_;
};

class ServerBackend final : public Backend {
 public:
  ServerBackend(std::string_view uri, const StockOptions& options)
      : rows_(StoreUri::parse(uri),
              {.sessions = options.sessions,
               .operationTimeout = options.operationTimeout,
               .table = "lockkeeper_stock"},
              options.environment) {}

  Dialect dialect() const override { return Dialect::mysql; }
  const std::string& display() const override { return rows_.display(); }
  Transaction begin(Access access, Instant latest) override {
    return Transaction(std::make_unique<ServerSession>(rows_.begin(latest, access)));
  }
  Fault faultOf(const std::exception& failure) const override {
    if (mysql::ServerRows::isContention(failure)) return Fault::contention;
    return mysql::ServerRows::isLostSession(failure) ? Fault::lostSession : Fault::final;
  }

 private:
  mysql::ServerRows rows_;
};

}  // namespace

std::unique_ptr<Backend> makeServerBackend(std::string_view uri, const StockOptions& options) {
  return std::make_unique<ServerBackend>(uri, options);
}

}  // namespace lockkeeper::inventory
