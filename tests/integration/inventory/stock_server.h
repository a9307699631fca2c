#pragma once

#include <Poco/Data/Session.h>

#include <cstdint>
#include <memory>
#include <string>

#include "database_server.h"

namespace lockkeeper::test {

/// What the tests of stock do with a server, whatever its database is. One thread at a time, except uri().
class StockServer {
 public:
  virtual ~StockServer() = default;

  virtual std::uint16_t port() const = 0;
  /// Makes an empty database of a new name, and returns the name.
  virtual std::string newDatabase() = 0;
  /// For the code under test; `port` may be a proxy's.
  virtual std::string uri(const std::string& database, std::uint16_t port) const = 0;
  /// A session of the tests themselves, as another user.
  virtual Poco::Data::Session session(const std::string& database) const = 0;

  /// How many sessions the code under test has open.
  virtual int sessions() const = 0;
  /// Ends all of them, as an operator would; returns how many.
  virtual int killSessions() const = 0;
  /// How many transactions wait for a row now.
  virtual std::int64_t rowLockWaits() const = 0;

  virtual void pause() = 0;
  virtual void resume() = 0;
  virtual void kill() = 0;
  /// Kills it if it runs and starts it on the same port, with the same data.
  virtual void restart() = 0;
};

/// `server` must outlive it.
std::unique_ptr<StockServer> asStockServer(DatabaseServer& server);
/// Starts a PostgreSQL.
std::unique_ptr<StockServer> startPostgres();

}  // namespace lockkeeper::test
