#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "process.h"
#include "temp_folder.h"

namespace lockkeeper::test {

struct RedisOptions {
  std::uint16_t port = 0;  ///< 0: a free one.
  bool unixSocket = false;
  bool cluster = false;               ///< A node of a Redis Cluster, still without slots.
  bool tls = false;                   ///< A second port that speaks TLS, with a certificate for 127.0.0.1.
  bool otherHostCertificate = false;  ///< With tls: a certificate that is good, but for another host.
  std::string password{};             ///< Of the default user; empty: none is asked for.
  std::vector<std::string> users{};   ///< Lines of an ACL file, such as "user bob on >secret ~* +@all".
  std::map<std::string, std::string> environment{};  ///< Added to the test's own.
  std::vector<std::string> sentinelLines{};  ///< Not empty: it is a sentinel, with these lines in its file.
  std::vector<std::string> arguments{};      ///< Appended to the command line, such as "--appendonly", "yes".
};

/// A real redis-server of its own on a free loopback port, in a folder of its own, without persistence unless
/// the arguments say so. Killed when the object ends. One thread at a time.
class RedisServer {
 public:
  /// Returns when the server answers PING. Throws std::runtime_error, with the server's log, when it cannot
  /// be started.
  explicit RedisServer(RedisOptions options = {});
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;
  ~RedisServer();

  std::uint16_t port() const { return port_; }
  std::uint16_t tlsPort() const { return tlsPort_; }
  std::filesystem::path unixPath() const { return folder_ / "redis.sock"; }
  std::string uri() const { return "redis://127.0.0.1:" + std::to_string(port_) + "/0"; }

  void pause();   ///< SIGSTOP; returns when the kernel has stopped it.
  void resume();  ///< SIGCONT.
  void kill();    ///< SIGKILL.
  /// Kills it if it runs and starts it on the same port, in the same folder.
  void restart();

  /// Of one that appends to a file: that has room for a few bytes more, until the next restart.
  void fillDisk();
  /// Whether it has neither been killed nor ended by itself.
  bool running() const;

  /// What an independent client (Poco::Redis) gets for a command: a status, number or string as text,
  /// "(nil)",
  /// "(error) …", or an array with one line for each element. Throws std::runtime_error when there is no
  /// answer in 10 s.
  std::string command(const std::vector<std::string>& words) const;

  std::string log() const { return readFile(folder_ / "log"); }

 private:
  bool startOnce();
  std::vector<std::string> commandLine() const;
  bool answers() const;

  const RedisOptions options_;
  TempFolder folder_;
  std::uint16_t port_ = 0;
  std::uint16_t tlsPort_ = 0;
  std::unique_ptr<Process> process_;
};

}  // namespace lockkeeper::test
