#include "redis_server.h"

#include <Poco/Net/NetException.h>
#include <Poco/Redis/Client.h>
#include <Poco/Redis/Exception.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "free_port.h"
#include "tls_files.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using Poco::Redis::RedisType;

constexpr int startAttempts = 10;
constexpr std::chrono::seconds startBound{30};

/// The machine's own, or another one of which the environment tells the command.
std::string program() {
  const char* const given = std::getenv("LOCKKEEPER_REDIS_SERVER");
  return given ? given : "redis-server";
}

bool isVersion(const std::string& beginning) {
  static const std::string version = runToEnd({program(), "--version"}).output;
  return version.find("Redis server v=" + beginning) != std::string::npos;
}

/// Whether it asks before it lets tests stop it with DEBUG, as Redis 7 and Valkey do.
bool asksForDebugCommand() { return !isVersion("6."); }

/// Whether it can be told the port of its cluster bus. Otherwise that is 10000 above its own.
bool takesClusterPort() { return !isVersion("6."); }

/// Whether a user needs rights to channels, and there are words for them.
bool knowsRightsToChannels() { return !isVersion("6.0."); }

std::string textOf(const RedisType::Ptr& reply) {
  switch (reply->type()) {
    case RedisType::REDIS_INTEGER:
      return std::to_string(dynamic_cast<const Poco::Redis::Type<Poco::Int64>&>(*reply).value());
    case RedisType::REDIS_SIMPLE_STRING:
      return dynamic_cast<const Poco::Redis::Type<std::string>&>(*reply).value();
    case RedisType::REDIS_BULK_STRING: {
      const auto& bulk = dynamic_cast<const Poco::Redis::Type<Poco::Redis::BulkString>&>(*reply).value();
      return bulk.isNull() ? "(nil)" : bulk.value();
    }
    case RedisType::REDIS_ARRAY: {
      const auto& array = dynamic_cast<const Poco::Redis::Type<Poco::Redis::Array>&>(*reply).value();
      std::string lines;
      if (!array.isNull()) {
        for (const RedisType::Ptr& element : array) lines += textOf(element) + "\n";
      }
      return lines;
    }
    case RedisType::REDIS_ERROR:
      return "(error) " +
             dynamic_cast<const Poco::Redis::Type<Poco::Redis::Error>&>(*reply).value().getMessage();
    default:
      throw std::runtime_error("a Redis reply of an unknown type");
  }
}

std::string execute(Poco::Redis::Client& client, const std::vector<std::string>& words) {
  Poco::Redis::Array array;
  for (const std::string& word : words) array.add(word);
  return textOf(client.sendCommand(array));
}

}  // namespace

RedisServer::RedisServer(RedisOptions options) : options_(std::move(options)) {
  if (!options_.users.empty()) {
    std::string lines = "user default on " +
                        (options_.password.empty() ? "nopass" : ">" + options_.password) + " ~* +@all" +
                        (knowsRightsToChannels() ? " &*" : "") + "\n";
    for (const std::string& user : options_.users) lines += user + "\n";
    writeFile(folder_ / "users.acl", lines);
  }
  for (int attempt = 0; attempt < startAttempts; ++attempt) {
    port_ = options_.port != 0 ? options_.port : freePort();
    tlsPort_ = options_.tls ? freePort() : std::uint16_t{0};
    if (startOnce()) return;
  }
  throw std::runtime_error("redis-server does not start: " + log());
}

RedisServer::~RedisServer() = default;

void RedisServer::pause() { process_->pause(); }

void RedisServer::resume() { process_->resume(); }

void RedisServer::kill() { process_.reset(); }

void RedisServer::fillDisk() {
  std::uintmax_t longest = 0;
  for (const auto& each : std::filesystem::recursive_directory_iterator(folder_ / "appendonlydir"))
    longest = std::max(longest, each.file_size());
  // A write that fits in part is cut, as on a disk; a bound that is reached already would be a signal.
  const rlimit bound{longest + 64, RLIM_INFINITY};
  if (::prlimit(process_->pid(), RLIMIT_FSIZE, &bound, nullptr) != 0)
    throw std::system_error(errno, std::generic_category(), "the size of files");
}

bool RedisServer::running() const { return process_ && process_->running(); }

void RedisServer::restart() {
  kill();
  for (int attempt = 0; attempt < startAttempts; ++attempt) {
    if (startOnce()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
  }
  throw std::runtime_error("redis-server does not start again: " + log());
}

bool RedisServer::startOnce() {
  ProcessOptions options;
  options.environment = options_.environment;
  options.standardOutput = folder_ / "log";
  options.standardError = folder_ / "log";
  try {
    process_ = std::make_unique<Process>(commandLine(), options);
  } catch (const std::system_error& error) {
    throw std::runtime_error(std::string(error.what()) + " (the tests need the package redis-server)");
  }
  const bool decided = waitUntil([&] { return answers() || !process_->running(); }, startBound);
  if (!decided) throw std::runtime_error("redis-server does not answer: " + log());
  // Somebody else's server may answer on the port that ours did not get.
  return process_->running() &&
         command({"INFO", "server"}).find("process_id:" + std::to_string(process_->pid()) + "\r") !=
             std::string::npos;
}

std::vector<std::string> RedisServer::commandLine() const {
  if (!options_.sentinelLines.empty()) {
    const std::filesystem::path file = folder_ / "sentinel.conf";
    // A sentinel writes down what it knows, and knows it again after a restart.
    if (!std::filesystem::exists(file)) {
      std::string lines =
          "port " + std::to_string(port_) + "\nbind 127.0.0.1\ndir " + folder_.path().string() + "\n";
      for (const std::string& line : options_.sentinelLines) lines += line + "\n";
      if (!options_.password.empty()) lines += "requirepass " + options_.password + "\n";
      writeFile(file, lines);
    }
    return {program(), file, "--sentinel", "--port", std::to_string(port_)};
  }
  std::vector<std::string> line{program(), "--bind",       "127.0.0.1", "--port", std::to_string(port_),
                                "--dir",   folder_.path(), "--save",    "",       "--appendonly",
                                "no"};
  const auto add = [&](std::initializer_list<std::string> words) { line.insert(line.end(), words); };
  if (asksForDebugCommand()) add({"--enable-debug-command", "yes"});
  if (options_.cluster) {
    add({"--cluster-enabled", "yes"});
    if (takesClusterPort()) add({"--cluster-port", std::to_string(freePort())});
  }
  if (options_.unixSocket) add({"--unixsocket", unixPath(), "--unixsocketperm", "700"});
  if (options_.tls) {
    const TlsFiles& files = TlsFiles::shared();
    const bool other = options_.otherHostCertificate;
    add({"--tls-port", std::to_string(tlsPort_), "--tls-auth-clients", "no"});
    add({"--tls-ca-cert-file", files.authority()});
    add({"--tls-cert-file", other ? files.otherHostCertificate() : files.certificate()});
    add({"--tls-key-file", other ? files.otherHostKey() : files.key()});
  }
  if (!options_.users.empty()) {
    add({"--aclfile", folder_ / "users.acl"});
  } else if (!options_.password.empty()) {
    add({"--requirepass", options_.password});
  }
  line.insert(line.end(), options_.arguments.begin(), options_.arguments.end());
  return line;
}

bool RedisServer::answers() const {
  try {
    return command({"PING"}) == "PONG";
  } catch (const std::exception&) {
    return false;
  }
}

std::string RedisServer::command(const std::vector<std::string>& words) const {
  try {
    Poco::Redis::Client client;
    client.connect("127.0.0.1", port_, Poco::Timespan(10, 0));
    client.setReceiveTimeout(Poco::Timespan(10, 0));
    if (!options_.password.empty()) execute(client, {"AUTH", options_.password});
    return execute(client, words);
  } catch (const Poco::Exception& error) {
    throw std::runtime_error("redis-server on port " + std::to_string(port_) + ": " + error.displayText());
  }
}

}  // namespace lockkeeper::test
