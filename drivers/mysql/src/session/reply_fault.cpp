#include "session/reply_fault.h"

#include <algorithm>
#include <initializer_list>

#include "lockkeeper/error.h"
#include "session/client_library.h"

namespace lockkeeper::mysql {
namespace {

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
bool isBrokenHandshake(const std::string& text) {
  return text.ends_with(')') || text.find("unexpected eof") != std::string::npos;
}

std::string tlsHint(unsigned error, const std::string& text) {
  if (error != CR_SSL_CONNECTION_ERROR || text.find("certificate") == std::string::npos) return "";
  return ": the server's certificate must name its host and be signed by an authority of caFile";
}

std::string schemaHint(std::string_view file) {
  const std::string name(file);
  return ": run drivers/mysql/schema/" + name + " (installed as share/lockkeeper/mysql/" + name +
         "), or add createTable=true to the store's URI" +
         (name == "getlock.sql" ? ", or fence=off to do without fences" : "");
}

}  // namespace

FaultKind kindOf(unsigned error) {
  switch (error) {
    case 1020:  // record has changed since last read
    case 1205:  // lock wait timeout
    case 1213:  // deadlock
    case 1317:  // somebody sent KILL QUERY
    case 1461:  // max_prepared_stmt_count is reached
    case 1615:  // the table changes faster than a statement on it can be prepared
    case 1969:  // MariaDB: the statement took longer than max_statement_time
    case 3024:  // MySQL: longer than max_execution_time
    case 3572:  // MySQL: others keep a row, and NOWAIT is said
      return FaultKind::contention;
    case 1053:  // server shutdown in progress
    case 1243:  // it knows a prepared statement no more: another session of it answers, not set up as ours
                // was
    case 1927:  // connection was killed
    case 2006:  // server has gone away
    case 2013:  // lost connection during query
    case 2055:  // lost connection at …
    case 3169:  // the session was killed
    case 4031:  // disconnected by the server because of inactivity
      return FaultKind::connectionLost;
    case 1290:  // an option such as --read-only prevents it
    case 1792:  // in a read-only transaction
    case 1836:  // read-only mode
    case 1874:  // InnoDB is in read-only mode
    case 3032:  // offline mode, as of a member that has left its group
    case 3100:  // Group Replication: the member has left its group or is about to
    case 3101:  // Group Replication has rolled the transaction back
    case 3781:  // Group Replication: a transaction that waited for the new primary's backlog was stopped
    case 3782:  // Group Replication: the member failed while it waited for that
    case 3783:  // Group Replication: the member is on its way out of the group and waits no more for that
    case 3796:  // Group Replication: the member's state does not allow to ask the group before reading
    case 3797:  // Group Replication: the group did not answer that
    case 3798:  // Group Replication: the group did not confirm a commit, as the consistency level AFTER wants
    case 3799:  // Group Replication: the member is being stopped and begins no transaction any more
      return FaultKind::notPrimary;
    case 1044:  // no right to use the database
    case 1045:  // no right to log in
    case 1046:  // no database is named
    case 1048:  // a column that takes no NULL
    case 1049:  // no such database
    case 1050:  // the table exists already
    case 1052:  // a name that two tables have
    case 1054:  // no such column: the table is of another kind
    case 1059:  // a name that is too long
    case 1060:  // the column exists already
    case 1061:  // the index exists already
    case 1062:  // another row has this key
    case 1064:  // a syntax that the server does not know
    case 1067:  // a default that the column does not take
    case 1071:  // an index that is too long for the server
    case 1091:  // no such column or index to drop
    case 1103:  // a name that no table may have
    case 1118:  // a row that is too long for the server
    case 1130:  // this host may not log in
    case 1136:  // more values than columns
    case 1142:  // no right to use the table so
    case 1143:  // no right to use the column so
    case noSuchTable:
    case 1153:  // more than max_allowed_packet
    case 1193:  // a setting that the server does not know
    case 1227:  // a privilege is missing
    case 1231:  // a value that the setting does not take
    case 1235:  // something that this version of the server cannot do
    case 1251:  // the client does not know the account's way to log in
    case 1264:  // more than the column takes: the table is of another kind
    case 1265:  // a value that the column cuts off
    case 1275:  // the account has a password of the oldest form
    case 1286:  // a storage engine that the server does not know
    case 1288:  // a view that takes no writes
    case 1292:  // a value that the column does not take
    case 1305:  // no such function
    case 1356:  // a view of something that is not there
    case 1364:  // a column that we do not know wants a value
    case 1366:  // a value that the column does not take
    case 1370:  // no right to call the function
    case 1406:  // a text that is too long for the column
    case 1451:  // a foreign key keeps the row
    case 1452:  // a foreign key has no row
    case 1524:  // the server lacks the account's way to log in
    case 1665:  // a binary log of statements, which READ COMMITTED does not allow
    case 1690:  // a number that is out of range
    case 1698:  // no right to log in without a password
    case 1820:  // the account must change its password
    case 1862:  // the account's password has expired
    case 3118:  // MySQL: the account is locked
    case 3159:  // only encrypted connections are let in
    case 3161:  // a storage engine that is switched off
    case 3750:  // a table must have a primary key
    case 3819:  // MySQL: a CHECK does not allow it
    case 4025:  // MariaDB: a CHECK does not allow it
    case 4151:  // MariaDB: the account is locked
      return FaultKind::misconfigured;
    case 1180:  // the commit failed
    case 1598:  // the binary log did not take the commit
      return FaultKind::commitFailed;
    default:
      return FaultKind::refused;
  }
}

bool isInterrupted(unsigned error) { return isOneOf(error, {1317, 1969, 3024}); }

void throwConnectFault(unsigned error, const std::string& text, const std::string& display) {
  if (kindOf(error) == FaultKind::notPrimary) throw NotPrimary(message(error, text, display));
  // A protocol of another kind, and what the client lacks for the account's way to log in, do not pass.
  const bool never = isOneOf(error, {CR_VERSION_ERROR, CR_AUTH_PLUGIN_CANNOT_LOAD, CR_AUTH_PLUGIN_ERR,
                                     CR_PLUGIN_NOT_ALLOWED}) ||
                     (error == CR_SSL_CONNECTION_ERROR && !isBrokenHandshake(text)) ||
                     kindOf(error) == FaultKind::misconfigured;
  if (never) throw ConfigError(message(error, text, display) + tlsHint(error, text));
  throw StoreUnavailable(message(error, text, display));
}

void throwFault(const Reply& reply, const std::string& display, std::string_view schemaFile) {
  const std::string line = message(reply.error, reply.reason, display);
  if (reply.lost()) throw OutcomeUnknown(line);
  if (reply.error == noSuchTable)
    throw NoSuchTable(line + (schemaFile.empty() ? "" : schemaHint(schemaFile)));
  if (reply.error == rowDeadlock) throw RowDeadlock(line);
  switch (kindOf(reply.error)) {
    case FaultKind::contention:
      throw Contention(line);
    case FaultKind::notPrimary:
      throw NotPrimary(line);
    case FaultKind::misconfigured:
      throw ConfigError(line);
    case FaultKind::connectionLost:
    case FaultKind::commitFailed:
      throw OutcomeUnknown(line);
    case FaultKind::refused:
      break;
  }
  throw Refused(line);
}

void throwPreparationFault(const Reply& reply, const std::string& display, std::string_view schemaFile) {
  if (reply.lost() || kindOf(reply.error) == FaultKind::commitFailed) {
    throw StoreUnavailable(message(reply.error, reply.reason, display));
  }
  throwFault(reply, display, schemaFile);
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
