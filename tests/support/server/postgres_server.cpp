#include "postgres_server.h"

#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "free_port.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

constexpr int startAttempts = 5;
constexpr std::chrono::seconds startBound{60};
constexpr const char* unprivileged = "postgres";

// Debian's newest one, or another one's command in the folder that the environment tells.
std::filesystem::path installed(const std::string& command) {
  if (const char* const folder = std::getenv("LOCKKEEPER_POSTGRES"))
    return folder / std::filesystem::path(command);
  std::filesystem::path newest;
  const std::filesystem::path all = "/usr/lib/postgresql";
  if (std::filesystem::exists(all)) {
    for (const auto& each : std::filesystem::directory_iterator(all)) newest = std::max(newest, each.path());
  }
  if (newest.empty()) throw std::runtime_error("no PostgreSQL in " + all.string() + ": run ./dev setup");
  return newest / "bin" / command;
}

std::vector<std::string> unprivilegedCommand(const std::string& command, std::vector<std::string> arguments) {
  std::vector<std::string> all;
  if (::geteuid() == 0)
    all = {"setpriv",        "--reuid",     unprivileged, "--regid", unprivileged,
           "--clear-groups", "--pdeathsig", "KILL",       "--"};
  all.push_back(installed(command).string());
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

void runUnprivileged(const std::string& command, std::vector<std::string> arguments) {
  const Finished finished =
      runToEnd(unprivilegedCommand(command, std::move(arguments)), {.environment = {{"LC_ALL", "C"}}});
  if (finished.exitCode != 0) throw std::runtime_error(command + ": " + finished.output + finished.errors);
}

void giveAway(const std::filesystem::path& folder) {
  if (::geteuid() != 0) return;
  const passwd* const user = ::getpwnam(unprivileged);
  if (user == nullptr || ::chown(folder.c_str(), user->pw_uid, user->pw_gid) != 0)
    throw std::runtime_error("cannot give " + folder.string() + " to " + unprivileged);
}

struct Finish {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
using Connection = std::unique_ptr<PGconn, Finish>;

Connection connect(const std::string& folder, std::uint16_t port, const std::string& database) {
  const std::string text = "host=" + folder + " port=" + std::to_string(port) +
                           " user=auditor connect_timeout=10 dbname=" + database;
  Connection connection(PQconnectdb(text.c_str()));
  if (PQstatus(connection.get()) != CONNECTION_OK)
    throw std::runtime_error(std::string("PostgreSQL: ") + PQerrorMessage(connection.get()));
  return connection;
}

}  // namespace

PostgresServer::PostgresServer(std::vector<std::string> settings,
                               std::map<std::string, std::string> environment)
    : settings_(std::move(settings)), environment_(std::move(environment)) {
  giveAway(folder_.path());
  runUnprivileged("initdb", {"-D", dataFolder(), "-U", "auditor", "--auth=trust", "--no-sync",
                             "--no-instructions", "--encoding=UTF8", "--locale=C"});
  writeFile(dataFolder() / "pg_hba.conf",
            "local all all trust\nlocal replication all trust\nhost all auditor 127.0.0.1/32 trust\n"
            "host replication auditor 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n");
  start();
  execute("CREATE DATABASE locks", "postgres");
}

PostgresServer::PostgresServer(const PostgresServer& primary, std::vector<std::string> settings)
    : settings_(std::move(settings)) {
  giveAway(folder_.path());
  runUnprivileged("pg_basebackup",
                  {"-D", dataFolder(), "-h", "127.0.0.1", "-p", std::to_string(primary.port()), "-U",
                   "auditor", "-X", "stream", "--checkpoint=fast", "--no-sync", "--write-recovery-conf"});
  start();
}

PostgresServer::~PostgresServer() {
  if (!process_) return;
  for (const pid_t each : processes()) ::kill(each, SIGCONT);
  process_->signal(SIGQUIT);  // It ends at once, with all of its processes.
  process_->waitFor(std::chrono::seconds{5});
}

void PostgresServer::start() {
  for (int attempt = 0; attempt < startAttempts; ++attempt) {
    port_ = freePort();
    if (startOnce()) return;
  }
  throw std::runtime_error("PostgreSQL does not start: " + log());
}

bool PostgresServer::startOnce() {
  std::vector<std::string> arguments{"-D", dataFolder(), "-p", std::to_string(port_),
                                     "-h", "127.0.0.1",  "-k", folder_.path()};
  for (const char* each : {"fsync=off", "shared_buffers=16MB", "max_connections=120", "autovacuum=off"})
    arguments.insert(arguments.end(), {"-c", each});
  for (const std::string& each : settings_) arguments.insert(arguments.end(), {"-c", each});
  std::map<std::string, std::string> environment = environment_;
  environment["LC_ALL"] = "C";
  process_ = std::make_unique<Process>(
      unprivilegedCommand("postgres", arguments),
      ProcessOptions{
          .environment = environment, .standardOutput = folder_ / "log", .standardError = folder_ / "log"});
  return waitUntil([this] { return answers() || !process_->running(); }, startBound) && process_->running();
}

bool PostgresServer::answers() const {
  try {
    connect(socketFolder(), port_, "postgres");
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

std::string PostgresServer::uri(const std::string& scheme, std::uint16_t port) {
  return scheme + "://keeper:p%40ss%2Fword@127.0.0.1:" + std::to_string(port) + "/locks";
}

void PostgresServer::makeLocks() {
  for (const auto& file : std::filesystem::directory_iterator(LOCKKEEPER_POSTGRES_SCHEMA))
    execute(readFile(file.path()));
  execute(
      "CREATE ROLE keeper LOGIN PASSWORD 'p@ss/word';"
      "GRANT SELECT, INSERT, UPDATE, DELETE ON lockkeeper_locks, lockkeeper_locks_shares, "
      "lockkeeper_locks_waiters, lockkeeper_locks_records, lockkeeper_locks_values, lockkeeper_rates TO "
      "keeper;"
      "GRANT USAGE ON SEQUENCE lockkeeper_locks_places TO keeper");
}

void PostgresServer::execute(const std::string& statements, const std::string& database) const {
  ask(statements, database);
}

std::string PostgresServer::ask(const std::string& query, const std::string& database) const {
  const Connection connection = connect(socketFolder(), port_, database);
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(connection.get(), query.c_str()),
                                                             PQclear);
  const auto status = PQresultStatus(result.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
    throw std::runtime_error(std::string("PostgreSQL: ") + PQresultErrorMessage(result.get()));
  return PQntuples(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "";
}

int PostgresServer::sessions() const {
  return std::stoi(ask("SELECT count(*) FROM pg_stat_activity WHERE usename = 'keeper'"));
}

void PostgresServer::endSessions() const {
  execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'keeper'");
}

std::vector<pid_t> PostgresServer::processes() const {
  if (!running()) return {};
  std::vector<pid_t> all{process_->pid()};
  const std::string number = std::to_string(process_->pid());
  std::ifstream children("/proc/" + number + "/task/" + number + "/children");
  for (pid_t each = 0; children >> each;) all.push_back(each);
  return all;
}

void PostgresServer::pause() {
  process_->pause();
  for (const pid_t each : processes()) ::kill(each, SIGSTOP);
}

void PostgresServer::resume() {
  for (const pid_t each : processes()) ::kill(each, SIGCONT);
}

void PostgresServer::kill() {
  for (const pid_t each : processes()) ::kill(each, SIGKILL);
  process_.reset();
}

void PostgresServer::restart() {
  if (process_) kill();
  // The segments of the killed one are given back when the last of its processes has ended.
  for (int attempt = 0; attempt < startAttempts; ++attempt) {
    if (startOnce()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds{200});
  }
  throw std::runtime_error("PostgreSQL does not start again: " + log());
}

void PostgresServer::fillDisk() {
  // Less than a page of its log. Root may not limit another user's processes everywhere.
  for (const pid_t each : processes()) {
    try {
      runUnprivileged("/usr/bin/prlimit", {"--pid=" + std::to_string(each), "--fsize=4096:"});
    } catch (const std::runtime_error&) {
      if (::kill(each, 0) == 0) throw;
    }
  }
}

bool PostgresServer::running() const { return process_ && process_->running(); }

void PostgresServer::addFile(const std::string& name, const std::string& text) const {
  writeFile(dataFolder() / name, text);
  std::filesystem::permissions(dataFolder() / name, std::filesystem::perms{0600});
  giveAway(dataFolder() / name);
}

void PostgresServer::promote() { execute("SELECT pg_promote(true, 30)", "postgres"); }

}  // namespace lockkeeper::test
