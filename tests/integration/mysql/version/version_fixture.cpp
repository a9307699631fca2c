#include "version_fixture.h"

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

std::shared_ptr<LockDriver> openVersion(const std::string& database, std::uint16_t port,
                                        const std::string& query, const Environment& environment) {
  StoreRegistry registry;
  mysql::use(registry);
  const std::string uri = DatabaseServer::uri(database, port);
  return registry.open("mysql+version" + uri.substr(uri.find("://")) + "?createTable=true&" + query,
                       environment);
}

Poco::Data::Session VersionStore::session() const {
  return Poco::Data::Session("MySQL", server.connectionString(database), 10);
}

std::string VersionStore::ask(const std::string& query) const {
  Poco::Data::Session sql = session();
  const Poco::Data::RecordSet rows(sql, query);
  return rows.rowCount() == 0 ? "" : rows.value(0, 0).convert<std::string>();
}

std::int64_t VersionStore::status(const std::string& name) const {
  Poco::Data::Session sql = session();
  const Poco::Data::RecordSet rows(sql, "SHOW GLOBAL STATUS LIKE '" + name + "'");
  return rows.value(1, 0).convert<std::int64_t>();
}

}  // namespace lockkeeper::test
