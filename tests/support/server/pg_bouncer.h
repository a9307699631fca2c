#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "free_port.h"
#include "process.h"
#include "temp_folder.h"

namespace lockkeeper::test {

/// PgBouncer in transaction mode on a free loopback port: each transaction may be on another one of two
/// sessions of a PostgresServer. Returns before it listens. Runs as Debian's user postgres, and ends with
/// the object.
class PgBouncer {
 public:
  /// Leads `user`, who has PostgresServer::password, to the database of the server at the port.
  PgBouncer(const std::string& user, const std::string& database, std::uint16_t server);

  /// What it has written so far.
  std::string log() const;

  const std::uint16_t port = freePort();

 private:
  TempFolder folder_;
  std::unique_ptr<Process> process_;
};

}  // namespace lockkeeper::test
