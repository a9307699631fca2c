#include "database_server.h"

#include <Poco/Data/MySQL/Connector.h>
#include <Poco/Data/RecordSet.h>
#include <Poco/Data/Session.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "free_port.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using Poco::Data::Keywords::bind;
using Poco::Data::Keywords::into;
using Poco::Data::Keywords::now;

constexpr int startAttempts = 5;
constexpr std::chrono::seconds startBound{60};
constexpr std::size_t loginSeconds = 10;

// Two users, so that the sessions of the code under test can be told from the tests' own. The shop's password
// holds what a URI must encode. Not in the binary log: members of a replication group would each have a
// history of their own.
constexpr const char* createUsers =
    "SET SESSION sql_log_bin = 0;\n"
    "CREATE USER IF NOT EXISTS 'shop'@'127.0.0.1' IDENTIFIED BY 'p@ss/word';\n"
    "GRANT ALL ON *.* TO 'shop'@'127.0.0.1';\n"
    "CREATE USER IF NOT EXISTS 'auditor'@'127.0.0.1' IDENTIFIED BY 'auditor';\n"
    "GRANT ALL ON *.* TO 'auditor'@'127.0.0.1' WITH GRANT OPTION;\n";

std::filesystem::path cacheFolder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  return (cache ? std::filesystem::path(cache) : std::filesystem::path(home ? home : "/") / ".cache") /
         "lockkeeper";
}

// Where tests/support/server/fetch_mysqld puts it by default.
std::filesystem::path mysqld() {
  const char* const given = std::getenv("LOCKKEEPER_MYSQLD");
  return given ? std::filesystem::path(given) : cacheFolder() / "mysql/mysqld";
}

// The machine's own, or another one's command in the folder that the environment tells.
std::string mariadb(const std::string& command) {
  const char* const folder = std::getenv("LOCKKEEPER_MARIADB");
  return folder ? folder + ("/" + command) : command;
}

std::string server(Brand brand) { return brand == Brand::mariadb ? mariadb("mariadbd") : mysqld().string(); }

}  // namespace

const char* nameOf(Brand brand) { return brand == Brand::mariadb ? "Mariadb" : "Mysql"; }

DatabaseServer::DatabaseServer(Brand brand, std::vector<std::string> settings,
                               std::map<std::string, std::string> environment)
    : brand_(brand), settings_(std::move(settings)), environment_(std::move(environment)) {
  static std::once_flag registered;
  std::call_once(registered, [] { Poco::Data::MySQL::Connector::registerConnector(); });
  if (brand_ == Brand::mysql && !std::filesystem::exists(mysqld())) {
    throw std::runtime_error(mysqld().string() + " is not there: run ./dev setup");
  }
  install();
  for (int attempt = 0; attempt < startAttempts; ++attempt) {
    port_ = freePort();
    if (startOnce()) return;
  }
  throw std::runtime_error(std::string(nameOf(brand_)) + " does not start: " + log());
}

DatabaseServer::~DatabaseServer() = default;

std::string DatabaseServer::uri(const std::string& database, std::uint16_t port) {
  return "mysql://shop:p%40ss%2Fword@127.0.0.1:" + std::to_string(port) + "/" + database;
}

std::string DatabaseServer::refusal(std::uint16_t error, int succeeded) {
  const std::string text = "#HY000refused";
  std::string packets;
  char number = 1;
  for (int each = 0; each < succeeded; ++each) {
    // No rows changed, no insert id; autocommit, and more results follow; no warnings.
    const std::string success("\0\0\0\x0a\0\0\0", 7);
    packets += std::string{static_cast<char>(success.size()), 0, 0, number++} + success;
  }
  packets += {static_cast<char>(text.size() + 3), 0, 0, number, '\xff'};
  packets += static_cast<char>(error & 0xff);
  packets += static_cast<char>(error >> 8);
  return packets + text;
}

std::string DatabaseServer::connectionString(const std::string& database) const {
  return "host=127.0.0.1;port=" + std::to_string(port_) + ";user=auditor;password=auditor;db=" + database;
}

std::string DatabaseServer::newDatabase() {
  const std::string name = "shop_" + std::to_string(++databases_);
  execute("CREATE DATABASE " + name);
  return name;
}

void DatabaseServer::letClerkIn(const std::string& database) const {
  execute("CREATE USER IF NOT EXISTS clerk@'127.0.0.1' IDENTIFIED BY 'clerk'");
  execute("GRANT ALL ON " + database + ".* TO clerk@'127.0.0.1'");
}

void DatabaseServer::execute(const std::string& statement) const {
  try {
    Poco::Data::Session session("MySQL", connectionString("mysql"), loginSeconds);
    session << statement, now;
  } catch (const Poco::Exception& error) {
    throw std::runtime_error(std::string(nameOf(brand_)) + " on port " + std::to_string(port_) + ": " +
                             error.displayText());
  }
}

std::string DatabaseServer::ask(const std::string& query) const {
  try {
    Poco::Data::Session session("MySQL", connectionString("mysql"), loginSeconds);
    const Poco::Data::RecordSet rows(session, query);
    const bool none = rows.rowCount() == 0 || rows.value(0, 0).isEmpty();
    return none ? "" : rows.value(0, 0).convert<std::string>();
  } catch (const Poco::Exception& error) {
    throw std::runtime_error(std::string(nameOf(brand_)) + " on port " + std::to_string(port_) + ": " +
                             error.displayText());
  }
}

std::vector<std::int64_t> DatabaseServer::sessionIds() const {
  try {
    Poco::Data::Session session("MySQL", connectionString("mysql"), loginSeconds);
    std::vector<std::int64_t> ids;
    session << "SELECT id FROM information_schema.processlist WHERE user = 'shop'", into(ids), now;
    return ids;
  } catch (const Poco::Exception& error) {
    throw std::runtime_error(std::string(nameOf(brand_)) + " on port " + std::to_string(port_) + ": " +
                             error.displayText());
  }
}

std::vector<std::int64_t> DatabaseServer::waitingFor(const std::string& name) const {
  Poco::Data::Session session("MySQL", connectionString("mysql"), loginSeconds);
  std::vector<std::int64_t> ids;
  session << "SELECT id FROM information_schema.processlist WHERE state = 'User lock' AND info LIKE ?",
      into(ids), bind("%GET_LOCK('" + name + "'%"), now;
  return ids;
}

int DatabaseServer::killSessions() const {
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

void DatabaseServer::pause() { process_->pause(); }

void DatabaseServer::resume() { process_->resume(); }

void DatabaseServer::kill() { process_.reset(); }

void DatabaseServer::restart() {
  kill();
  for (int attempt = 0; attempt < startAttempts; ++attempt) {
    if (startOnce()) return;
  }
  throw std::runtime_error(std::string(nameOf(brand_)) + " does not start again: " + log());
}

std::vector<std::string> DatabaseServer::command(const std::filesystem::path& folder,
                                                 std::vector<std::string> settings) const {
  // Not /tmp: a server that starts deletes the temporary tables that it finds, whosever they are.
  settings.insert(settings.begin(), {"--no-defaults", "--datadir=" + (folder / "data").string(),
                                     "--tmpdir=" + (folder / "tmp").string(), "--innodb-buffer-pool-size=32M",
                                     // Many servers at once would use up what the kernel has of it.
                                     "--innodb-use-native-aio=OFF",
                                     brand_ == Brand::mariadb ? "--innodb-log-file-size=16M"
                                                              : "--innodb-redo-log-capacity=16M"});
  if (::geteuid() == 0) settings.push_back("--user=root");  // They refuse to run as root unless told to.
  return settings;
}

// What the server makes of an empty folder is kept for all test programs: copying it takes a tenth of the
// time.
std::filesystem::path DatabaseServer::installed() const {
  const auto version = runToEnd({server(brand_), "--no-defaults", "--version"}, {}, std::chrono::minutes{1});
  std::string words = version.output;
  for (const std::string& word : installation({})) words += " " + word;
  const auto kept =
      cacheFolder() / "databases" / (nameOf(brand_) + std::to_string(std::hash<std::string>{}(words)));
  if (std::filesystem::exists(kept)) return kept;
  std::filesystem::path fresh = kept;
  fresh += "." + std::to_string(::getpid());
  std::filesystem::remove_all(fresh);
  std::filesystem::create_directories(fresh);
  installInto(fresh);
  std::error_code isThere;  // Another program was faster.
  std::filesystem::rename(fresh / "data", kept, isThere);
  std::filesystem::remove_all(fresh);
  return kept;
}

void DatabaseServer::install() {
  static std::mutex mutex;
  static std::map<Brand, std::filesystem::path> kept;
  const std::lock_guard held(mutex);
  if (!kept.contains(brand_)) kept[brand_] = installed();
  std::filesystem::copy(kept[brand_], folder_ / "data", std::filesystem::copy_options::recursive);
  std::filesystem::create_directory(folder_ / "tmp");
  writeFile(folder_ / "init.sql", createUsers);
}

std::vector<std::string> DatabaseServer::installation(const std::filesystem::path& folder) const {
  auto install = brand_ == Brand::mariadb
                     ? command(folder, {"--auth-root-authentication-method=normal", "--skip-test-db"})
                     : command(folder, {"--initialize-insecure"});
  install.insert(install.begin(),
                 brand_ == Brand::mariadb ? mariadb("mariadb-install-db") : mysqld().string());
  return install;
}

void DatabaseServer::installInto(const std::filesystem::path& folder) const {
  std::filesystem::create_directory(folder / "tmp");
  const auto install = installation(folder);
  const Finished finished = runToEnd(install, {}, std::chrono::minutes{5});
  if (finished.exitCode != 0) throw std::runtime_error(install[0] + ": " + finished.output + finished.errors);
  std::filesystem::remove(folder / "data/auto.cnf");  // It names one server.
}

bool DatabaseServer::startOnce() {
  ProcessOptions options;
  options.environment = environment_;
  options.standardOutput = folder_ / "log";
  options.standardError = folder_ / "log";
  auto start = command(
      folder_.path(),
      {"--socket=" + (folder_ / "socket").string(), "--pid-file=" + (folder_ / "pid").string(),
       "--init-file=" + (folder_ / "init.sql").string(), "--skip-networking=0", "--bind-address=127.0.0.1",
       "--port=" + std::to_string(port_), "--skip-name-resolve", "--performance-schema=off"});
  if (brand_ == Brand::mysql) start.insert(start.end(), {"--mysqlx=OFF", "--disable-log-bin"});
  start.insert(start.end(), settings_.begin(), settings_.end());
  start.insert(start.begin(), server(brand_));
  process_ = std::make_unique<Process>(start, options);
  const bool decided = waitUntil([&] { return answers() || !process_->running(); }, startBound);
  if (!decided) throw std::runtime_error(std::string(nameOf(brand_)) + " does not answer: " + log());
  return process_->running();
}

bool DatabaseServer::answers() const {
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
