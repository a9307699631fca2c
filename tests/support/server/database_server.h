#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "process.h"
#include "temp_folder.h"

namespace lockkeeper::test {

enum class Brand { mariadb, mysql };

inline constexpr auto allBrands = {Brand::mariadb, Brand::mysql};

/// "Mariadb" or "Mysql": for names of tests.
const char* nameOf(Brand brand);

/// A real server of its own on a free loopback port, with its data in a folder of its own: Debian's mariadbd,
/// or the mysqld that `./dev setup` has fetched. Killed when the object ends. One thread at a time, except
/// uri() and execute().
class DatabaseServer {
 public:
  /// Starts with `settings` besides our own, such as "--read-only", and with `environment` added to the
  /// test's own. Returns when the server lets us in. Throws std::runtime_error, with the server's log, when
  /// it cannot be started.
  explicit DatabaseServer(Brand brand, std::vector<std::string> settings = {},
                          std::map<std::string, std::string> environment = {});
  DatabaseServer(const DatabaseServer&) = delete;
  DatabaseServer& operator=(const DatabaseServer&) = delete;
  ~DatabaseServer();

  Brand brand() const { return brand_; }
  std::uint16_t port() const { return port_; }

  /// mysql://shop:password@127.0.0.1:port/database, for the code under test; `port` may be a proxy's.
  std::string uri(const std::string& database) const { return uri(database, port_); }
  static std::string uri(const std::string& database, std::uint16_t port);

  /// What a server sends in place of a result, in the protocol's bytes; after the results of those statements
  /// of the batch that have succeeded.
  static std::string refusal(std::uint16_t error, int succeeded = 0);

  /// For sessions of the tests themselves: in Poco's words, as another user.
  std::string connectionString(const std::string& database) const;

  /// Makes an empty database of a new name, and returns the name.
  std::string newDatabase();

  /// Gives clerk, whose password is his name, all rights on the database and none on the server: one who has
  /// such writes to a server that is read-only, too.
  void letClerkIn(const std::string& database) const;

  /// Runs one statement on a session of its own. Throws std::runtime_error when it fails.
  void execute(const std::string& statement) const;

  /// The first column of the first row, as text; "" when there is none. Throws as execute().
  std::string ask(const std::string& query) const;

  /// How many sessions the code under test has open.
  int sessions() const { return static_cast<int>(sessionIds().size()); }

  /// Which sessions, whoever's, stand in the server's queue for the named lock LIKE `name`. One that only
  /// tries does not.
  std::vector<std::int64_t> waitingFor(const std::string& name) const;

  /// Ends all sessions of the code under test, as an operator would; returns how many.
  int killSessions() const;

  void pause();   ///< SIGSTOP; returns when the kernel has stopped it.
  void resume();  ///< SIGCONT.
  void kill();    ///< SIGKILL.
  /// Kills it if it runs and starts it on the same port, with the same data.
  void restart();

  std::string log() const { return readFile(folder_ / "log"); }

 private:
  void install();
  std::filesystem::path installed() const;
  std::vector<std::string> installation(const std::filesystem::path& folder) const;
  void installInto(const std::filesystem::path& folder) const;
  bool startOnce();
  bool answers() const;
  std::vector<std::int64_t> sessionIds() const;

  std::vector<std::string> command(const std::filesystem::path& folder,
                                   std::vector<std::string> settings) const;

  const Brand brand_;
  const std::vector<std::string> settings_;
  const std::map<std::string, std::string> environment_;
  TempFolder folder_;
  std::uint16_t port_ = 0;
  int databases_ = 0;
  std::unique_ptr<Process> process_;
};

}  // namespace lockkeeper::test
