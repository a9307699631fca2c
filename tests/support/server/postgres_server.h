#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "process.h"
#include "temp_folder.h"

namespace lockkeeper::test {

/// A real PostgreSQL of its own on a free loopback port, with its data in a folder of its own. Stopped when
/// the object ends. The server refuses to run as root: then it runs as Debian's user postgres. One thread at
/// a time, except uri(), execute() and ask().
class PostgresServer {
 public:
  /// Starts with `settings` besides our own, such as "fsync=on", and with `environment` added to the test's.
  /// Returns when the server lets us in. Throws std::runtime_error, with the server's log, when it cannot be
  /// started.
  explicit PostgresServer(std::vector<std::string> settings = {},
                          std::map<std::string, std::string> environment = {});
  /// A streaming standby of `primary`.
  PostgresServer(const PostgresServer& primary, std::vector<std::string> settings);
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;
  ~PostgresServer();

  std::uint16_t port() const { return port_; }
  /// The folder of its unix socket.
  std::string socketFolder() const { return folder_.path().string(); }
  std::filesystem::path dataFolder() const { return folder_ / "data"; }

  /// The user keeper, who may do what the driver says that it needs, and nothing else, and whose password
  /// holds what a URI must encode; and, in the database locks, the tables of drivers/postgres/schema.
  void makeLocks();
  /// For keeper: scheme://keeper:password@127.0.0.1:port/locks; `port` may be a proxy's.
  std::string uri(const std::string& scheme) const { return uri(scheme, port_); }
  static std::string uri(const std::string& scheme, std::uint16_t port);
  static constexpr const char* password = "p@ss/word";

  /// Runs statements on a session of its own, as the superuser auditor. Throws std::runtime_error when one
  /// fails.
  void execute(const std::string& statements, const std::string& database = "locks") const;
  /// The first column of the first row, as text; "" when there is none. Throws as execute().
  std::string ask(const std::string& query, const std::string& database = "locks") const;

  /// How many sessions keeper has open.
  int sessions() const;
  /// Ends all of keeper's sessions, as an operator would.
  void endSessions() const;

  void pause();   ///< SIGSTOP for all of its processes.
  void resume();  ///< SIGCONT.
  void kill();    ///< SIGKILL for all of its processes.
  /// Kills it if it runs and starts it on the same port, with the same data.
  void restart();
  /// From now on, it can write down no commit, until restart(): then it ends itself.
  void fillDisk();
  bool running() const;
  /// Writes a file into its data folder that nobody else may read.
  void addFile(const std::string& name, const std::string& text) const;
  /// Makes a standby the primary.
  void promote();

  std::string log() const { return readFile(folder_ / "log"); }

 private:
  void start();
  bool startOnce();
  bool answers() const;
  std::vector<pid_t> processes() const;

  const std::vector<std::string> settings_;
  const std::map<std::string, std::string> environment_;
  TempFolder folder_;
  std::uint16_t port_ = 0;
  std::unique_ptr<Process> process_;
};

}  // namespace lockkeeper::test
