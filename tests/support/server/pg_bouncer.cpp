#include "pg_bouncer.h"

#include <filesystem>
#include <vector>

#include "postgres_server.h"

namespace lockkeeper::test {

PgBouncer::PgBouncer(const std::string& user, const std::string& database, std::uint16_t server) {
  writeFile(folder_ / "users", "\"" + user + "\" \"" + PostgresServer::password + "\"\n");
  writeFile(folder_ / "ini", "[databases]\n" + database + " = host=127.0.0.1 port=" + std::to_string(server) +
                                 " pool_size=2\n[pgbouncer]\nlisten_addr = 127.0.0.1\nunix_socket_dir =\n"
                                 "pool_mode = transaction\nauth_type = plain\nauth_file = " +
                                 (folder_ / "users").string() + "\nlisten_port = " + std::to_string(port) +
                                 "\n");
  for (const auto& file : {folder_.path(), folder_ / "users", folder_ / "ini"})
    std::filesystem::permissions(file, std::filesystem::perms::others_all,
                                 std::filesystem::perm_options::add);
  // It refuses to run as root.
  process_ = std::make_unique<Process>(
      std::vector<std::string>{"setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups",
                               "--pdeathsig", "KILL", "--", "/usr/sbin/pgbouncer",
                               (folder_ / "ini").string()},
      ProcessOptions{.standardOutput = folder_ / "log", .standardError = folder_ / "log"});
}

std::string PgBouncer::log() const { return readFile(folder_ / "log"); }

}  // namespace lockkeeper::test
