#include "shop/unlocked_shop.h"

#include <Poco/Data/MySQL/Connector.h>
#include <Poco/Data/SQLite/Connector.h>
#include <Poco/Data/Session.h>
#include <Poco/Data/Statement.h>

#include <chrono>
#include <thread>

#include "lockkeeper/error.h"
#include "lockkeeper/store_uri.h"

namespace flash_sale {
namespace {

using lockkeeper::inventory::Deduction;
using Poco::Data::Session;
using Poco::Data::Statement;
using Poco::Data::Keywords::bind;
using Poco::Data::Keywords::into;
using Poco::Data::Keywords::now;

// What a real shop does between reading and writing: prices, vouchers, a call to the payment service.
constexpr std::chrono::milliseconds businessLogic{1};

bool isSqlite(const std::string& database) { return database.starts_with("sqlite:"); }

std::string connectorFor(const std::string& database) {
  Poco::Data::SQLite::Connector::registerConnector();
  Poco::Data::MySQL::Connector::registerConnector();
  return isSqlite(database) ? Poco::Data::SQLite::Connector::KEY : Poco::Data::MySQL::Connector::KEY;
}

std::string connectionString(const std::string& database) {
  if (isSqlite(database)) return database.substr(std::string("sqlite:").size());
  const auto uri = lockkeeper::StoreUri::parse(database);
  if (uri.scheme() != "mysql") {
    throw lockkeeper::ConfigError("the sale without a lock is on sqlite: or mysql://, not on " +
                                  uri.scheme() + "://; --serve sells there, too");
  }
  const auto& server = uri.endpoints().at(0);
  return "host=" + (server.host == "localhost" ? "127.0.0.1" : server.host) +
         ";port=" + std::to_string(server.port.value_or(3306)) + ";user=" + server.user +
         ";password=" + uri.passwordOf(server) + ";db=" + uri.path().substr(1);
}

std::optional<std::int64_t> read(Session& session, const std::string& sku) {
  std::int64_t level = 0;
  Statement select(session);
  select << "SELECT level FROM lockkeeper_stock WHERE sku = ?", into(level), bind(sku);
  return select.execute() == 1 ? std::optional(level) : std::nullopt;
}

}  // namespace

/// A session of the pool, which would refuse one where all are taken; this waits.
class UnlockedShop::Use {
 public:
  explicit Use(UnlockedShop& shop) : shop_(shop) { shop.free_.acquire(); }
  ~Use() {
    session_.reset();
    shop_.free_.release();
  }
  Session& session() {
    if (!session_) session_.emplace(shop_.sessions_.get());
    return *session_;
  }

 private:
  UnlockedShop& shop_;
  std::optional<Session> session_;
};

UnlockedShop::UnlockedShop(const std::string& database, int sessions)
    : free_(sessions), sessions_(connectorFor(database), connectionString(database), 1, sessions) {}

Deduction UnlockedShop::order(const std::string& sku, std::int64_t quantity, const std::string& orderId) {
  Use use(*this);
  Session& session = use.session();
  const auto level = read(session, sku);
  if (!level) return Deduction::unknownSku;
  if (*level < quantity) return Deduction::soldOut;
  std::this_thread::sleep_for(businessLogic);
  session << "UPDATE lockkeeper_stock SET level = ? WHERE sku = ?", bind(*level - quantity), bind(sku), now;
  session << "INSERT INTO lockkeeper_orders (order_id, sku, quantity, attempt) VALUES (?, ?, ?, 0)",
      bind(orderId), bind(sku), bind(quantity), now;
  return Deduction::deducted;
}

std::optional<std::int64_t> UnlockedShop::level(const std::string& sku) {
  Use use(*this);
  return read(use.session(), sku);
}

}  // namespace flash_sale
