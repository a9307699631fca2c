#include "stock_server.h"

#include <Poco/Data/MySQL/Connector.h>
#include <Poco/Data/PostgreSQL/Connector.h>

#include <mutex>

#include "postgres_server.h"

namespace lockkeeper::test {
namespace {

using Poco::Data::Keywords::into;
using Poco::Data::Keywords::now;

constexpr std::size_t loginSeconds = 10;

class MysqlStockServer final : public StockServer {
 public:
  explicit MysqlStockServer(DatabaseServer& server) : server_(server) {
    static std::once_flag registered;
    std::call_once(registered, [] { Poco::Data::MySQL::Connector::registerConnector(); });
  }

  std::uint16_t port() const override { return server_.port(); }
  std::string newDatabase() override { return server_.newDatabase(); }
  std::string uri(const std::string& database, std::uint16_t port) const override {
    return DatabaseServer::uri(database, port);
  }
  Poco::Data::Session session(const std::string& database) const override {
    return {"MySQL", server_.connectionString(database), loginSeconds};
  }
  int sessions() const override { return server_.sessions(); }
  int killSessions() const override { return server_.killSessions(); }
  std::int64_t rowLockWaits() const override {
    Poco::Data::Session watching = session("mysql");
    std::string name;
    std::string waits;
    watching << "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'", into(name), into(waits), now;
    return std::stoll(waits);
  }
  void pause() override { server_.pause(); }
  void resume() override { server_.resume(); }
  void kill() override { server_.kill(); }
  void restart() override { server_.restart(); }

 private:
  DatabaseServer& server_;
};

/// As on the other servers, the user is shop, and the password holds what a URI must encode.
class PostgresStockServer final : public StockServer {
 public:
  PostgresStockServer() {
    static std::once_flag registered;
    std::call_once(registered, [] { Poco::Data::PostgreSQL::Connector::registerConnector(); });
    server_.execute("CREATE ROLE shop LOGIN PASSWORD 'p@ss/word'");
  }

  std::uint16_t port() const override { return server_.port(); }
  std::string newDatabase() override {
    const std::string name = "shop_" + std::to_string(++databases_);
    server_.execute("CREATE DATABASE " + name + " OWNER shop");
    return name;
  }
  std::string uri(const std::string& database, std::uint16_t port) const override {
    return "postgres://shop:p%40ss%2Fword@127.0.0.1:" + std::to_string(port) + "/" + database;
  }
  Poco::Data::Session session(const std::string& database) const override {
    return {"PostgreSQL",
            "host=127.0.0.1 port=" + std::to_string(server_.port()) + " user=auditor dbname=" + database,
            loginSeconds};
  }
  int sessions() const override {
    return ask("SELECT count(*) FROM pg_stat_activity WHERE usename = 'shop'");
  }
  int killSessions() const override {
    // Materialized: the planner may otherwise call the function for the sessions of others, too.
    return ask(
        "WITH ours AS MATERIALIZED (SELECT pid FROM pg_stat_activity WHERE usename = 'shop') "
        "SELECT count(*) FROM ours WHERE pg_terminate_backend(pid, 5000)");
  }
  std::int64_t rowLockWaits() const override {
    return ask("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'");
  }
  void pause() override { server_.pause(); }
  void resume() override { server_.resume(); }
  void kill() override { server_.kill(); }
  void restart() override { server_.restart(); }

 private:
  int ask(const std::string& query) const { return std::stoi(server_.ask(query)); }

  PostgresServer server_;
  int databases_ = 0;
};

}  // namespace

std::unique_ptr<StockServer> asStockServer(DatabaseServer& server) {
  return std::make_unique<MysqlStockServer>(server);
}

std::unique_ptr<StockServer> startPostgres() { return std::make_unique<PostgresStockServer>(); }

}  // namespace lockkeeper::test
