#include "session/reply_fault.h"

#include <mysql/errmsg.h>

#include <algorithm>
#include <initializer_list>

#include "lockkeeper/driver/key.h"
#include "lockkeeper/sql/sql_fault.h"

namespace lockkeeper::mysql {
namespace {

using sql::SqlFault;

constexpr unsigned noSuchTable = 1146;
constexpr unsigned rowDeadlock = 1213;   // MariaDB's number for named locks, too
constexpr unsigned lockDeadlock = 3058;  // MySQL's

bool isOneOf(unsigned error, std::initializer_list<unsigned> numbers) {
  return std::ranges::find(numbers, error) != numbers.end();
}

std::string message(unsigned error, const std::string& text, const std::string& display) {
  std::string line = display + ": " + text + " (error " + std::to_string(error) + ")";
  std::ranges::replace_if(
      line, [](unsigned char c) { return c < ' '; }, ' ');
  return line;
}

// The library has one number for all that goes wrong with TLS, and says the rest in words: an error of the
// operating system with its number, an end of the connection, or what is wrong with the certificate.
bool isBrokenHandshake(unsigned error, const std::string& text) {
  return error == CR_SSL_CONNECTION_ERROR &&
         (text.ends_with(')') || text.find("unexpected eof") != std::string::npos);
}

std::string tlsHint(unsigned error, const std::string& text) {
  if (error != CR_SSL_CONNECTION_ERROR || text.find("certificate") == std::string::npos) return "";
  return ": the server's certificate must name its host and be signed by an authority of caFile";
}

}  // namespace

void throwConnectFault(unsigned error, const std::string& text, const std::string& display) {
  // Too many sessions, for now; everything else that a server says at log-in is for its administrator, and so
  // are a protocol of another kind and what the client lacks for the account's way to log in.
  const bool passes = isOneOf(error, {1040, 1129, 1203, 1226}) ||
                      sql::classify(static_cast<long>(error)) == SqlFault::connectionLost ||
                      isBrokenHandshake(error, text);
  const bool ours = error >= CR_MIN_ERROR && error <= CR_MAX_ERROR;
  const bool never = !passes && (!ours || isOneOf(error, {CR_VERSION_ERROR, CR_SSL_CONNECTION_ERROR,
                                                          CR_AUTH_PLUGIN_CANNOT_LOAD, CR_AUTH_PLUGIN_ERR}));
  if (never) throw ConfigError(message(error, text, display) + tlsHint(error, text));
  throw StoreUnavailable(message(error, text, display));
}

void throwFault(const Reply& reply, const std::string& display) {
  const std::string line = message(reply.error, reply.reason, display);
  if (reply.lost()) throw OutcomeUnknown(line);
  if (reply.error == noSuchTable) {
    if (reply.reason.find("lockkeeper_rates") != std::string::npos) {
      throw ConfigError(
          line +
          ": run drivers/mysql/schema/rates.sql (installed as share/lockkeeper/mysql/rates.sql), "
          "or add createTable=true to the store's URI");
    }
    throw ConfigError(line +
                      ": run drivers/mysql/schema/getlock.sql (installed as "
                      "share/lockkeeper/mysql/getlock.sql), or add createTable=true to the store's URI, or "
                      "fence=off to do without fences");
  }
  if (reply.error == rowDeadlock) throw RowDeadlock(line);
  if (sql::classify(static_cast<long>(reply.error)) == SqlFault::contention) throw StoreUnavailable(line);
  throw ConfigError(line);
}

void throwLockFault(const Reply& reply, std::string_view key, const std::vector<std::string>& held,
                    const std::string& display) {
  if (reply.error != rowDeadlock && reply.error != lockDeadlock) throwFault(reply, display);
  std::string names;
  for (const std::string& name : held) names.append(names.empty() ? "" : ", ").append(quoted(name));
  throw Deadlock(display + ": waiting for " + quoted(key) + " while holding " +
                 (names.empty() ? "nothing" : names) + " would be a deadlock (error " +
                 std::to_string(reply.error) + ")");
}

}  // namespace lockkeeper::mysql
