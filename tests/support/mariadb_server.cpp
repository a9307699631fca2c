#include "mariadb_server.h"

#include <Poco/Data/MySQL/Connector.h>
#include <Poco/Data/Session.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "free_port.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using Poco::Data::Keywords::into;
using Poco::Data::Keywords::now;

constexpr int startAttempts = 5;
constexpr std::chrono::seconds startBound{60};
constexpr std::size_t loginSeconds = 10;

// Two users, so that the sessions of the code under test can be told from the tests' own. The shop's password
// holds what a URI must encode.
constexpr const char* createUsers =
    "CREATE USER IF NOT EXISTS 'shop'@'127.0.0.1' IDENTIFIED BY 'p@ss/word';\n"
    "GRANT ALL ON *.* TO 'shop'@'127.0.0.1';\n"
    "CREATE USER IF NOT EXISTS 'auditor'@'127.0.0.1' IDENTIFIED BY 'auditor';\n"
    "GRANT ALL ON *.* TO 'auditor'@'127.0.0.1';\n";

// Servers refuse to run as root unless told to.
std::vector<std::string> asWhoWeAre(std::vector<std::string> command) {
  if (::geteuid() == 0) command.push_back("--user=root");
  return command;
}

}  // namespace

MariaDbServer::MariaDbServer() {
  static std::once_flag registered;
  std::call_once(registered, [] { Poco::Data::MySQL::Connector::registerConnector(); });
  install();
  for (int attempt = 0; attempt < startAttempts; ++attempt) {
    port_ = freePort();
    if (startOnce()) return;
  }
  throw std::runtime_error("mariadbd does not start: " + log());
}

MariaDbServer::~MariaDbServer() = default;

std::string MariaDbServer::uri(const std::string& database, std::uint16_t port) {
  return "mysql://shop:p%40ss%2Fword@127.0.0.1:" + std::to_string(port) + "/" + database;
}

std::string MariaDbServer::connectionString(const std::string& database) const {
  return "host=127.0.0.1;port=" + std::to_string(port_) + ";user=auditor;password=auditor;db=" + database;
}

std::string MariaDbServer::newDatabase() {
  const std::string name = "shop_" + std::to_string(++databases_);
  execute("CREATE DATABASE " + name);
  return name;
}

void MariaDbServer::execute(const std::string& statement) const {
  try {
    Poco::Data::Session session("MySQL", connectionString("mysql"), loginSeconds);
    session << statement, now;
  } catch (const Poco::Exception& error) {
    throw std::runtime_error("mariadbd on port " + std::to_string(port_) + ": " + error.displayText());
  }
}

std::vector<std::int64_t> MariaDbServer::sessionIds() const {
  try {
    Poco::Data::Session session("MySQL", connectionString("mysql"), loginSeconds);
    std::vector<std::int64_t> ids;
    session << "SELECT id FROM information_schema.processlist WHERE user = 'shop'", into(ids), now;
    return ids;
  } catch (const Poco::Exception& error) {
    throw std::runtime_error("mariadbd on port " + std::to_string(port_) + ": " + error.displayText());
  }
}

int MariaDbServer::killSessions() const {
  int killed = 0;
  for (const auto id : sessionIds()) {
    try {
      execute("KILL " + std::to_string(id));
      ++killed;
    } catch (const std::runtime_error&) {  // It has ended by itself.
    }
  }
  return killed;
}

void MariaDbServer::pause() { process_->pause(); }

void MariaDbServer::resume() { process_->resume(); }

void MariaDbServer::kill() { process_.reset(); }

void MariaDbServer::restart() {
  kill();
  for (int attempt = 0; attempt < startAttempts; ++attempt) {
    if (startOnce()) return;
  }
  throw std::runtime_error("mariadbd does not start again: " + log());
}

void MariaDbServer::install() {
  writeFile(folder_ / "init.sql", createUsers);
  // Not /tmp: a server that starts deletes the temporary tables that it finds, whosever they are.
  std::filesystem::create_directory(folder_ / "tmp");
  const Finished finished =
      runToEnd(asWhoWeAre({"mariadb-install-db", "--no-defaults", "--datadir=" + (folder_ / "data").string(),
                           "--tmpdir=" + (folder_ / "tmp").string(),
                           "--auth-root-authentication-method=normal", "--skip-test-db"}));
  if (finished.exitCode != 0) {
    throw std::runtime_error("mariadb-install-db (package mariadb-server-core): " + finished.output +
                             finished.errors);
  }
}

bool MariaDbServer::startOnce() {
  ProcessOptions options;
  options.standardOutput = folder_ / "log";
  options.standardError = folder_ / "log";
  process_ = std::make_unique<Process>(
      asWhoWeAre({"mariadbd", "--no-defaults", "--datadir=" + (folder_ / "data").string(),
                  "--tmpdir=" + (folder_ / "tmp").string(), "--socket=" + (folder_ / "socket").string(),
                  "--pid-file=" + (folder_ / "pid").string(),
                  "--init-file=" + (folder_ / "init.sql").string(), "--skip-networking=0",
                  "--bind-address=127.0.0.1", "--port=" + std::to_string(port_), "--skip-name-resolve",
                  "--performance-schema=off", "--innodb-buffer-pool-size=32M"}),
      options);
  const bool decided = waitUntil([&] { return answers() || !process_->running(); }, startBound);
  if (!decided) throw std::runtime_error("mariadbd does not answer: " + log());
  return process_->running();
}

bool MariaDbServer::answers() const {
  try {
    // Only our own server knows this folder: another one may answer on the port that ours did not get.
    Poco::Data::Session session("MySQL", connectionString("mysql"), loginSeconds);
    std::string folder;
    session << "SELECT @@datadir", into(folder), now;
    return folder.starts_with((folder_ / "data").string());
  } catch (const Poco::Exception&) {
    return false;
  }
}

}  // namespace lockkeeper::test
