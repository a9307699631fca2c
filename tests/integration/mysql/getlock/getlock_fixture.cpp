#include "getlock_fixture.h"

#include <Poco/Data/RecordSet.h>
#include <Poco/Data/Session.h>

#include <map>

#include "lockkeeper/mysql/use.h"
#include "lockkeeper/store_registry.h"

namespace lockkeeper::test {

DatabaseServer& serverOf(Brand brand) {
  static std::map<Brand, DatabaseServer> servers;
  return servers.try_emplace(brand, brand).first->second;
}

std::shared_ptr<LockDriver> openGetLock(const std::string& database, std::uint16_t port,
                                        const std::string& query, const Environment& environment) {
  StoreRegistry registry;
  mysql::use(registry);
  const std::string uri = DatabaseServer::uri(database, port);
  return registry.open("mysql+getlock" + uri.substr(uri.find("://")) + "?createTable=true&" + query,
                       environment);
}

std::string GetLockStore::ask(const std::string& query) const {
  Poco::Data::Session session("MySQL", server.connectionString(database), 10);
  const Poco::Data::RecordSet rows(session, query);
  return rows.rowCount() == 0 ? "" : rows.value(0, 0).convert<std::string>();
}

}  // namespace lockkeeper::test
