#include "session/open_session.h"

#include "lockkeeper/error.h"
#include "lockkeeper/sql/server_check.h"
#include "session/reply_fault.h"

namespace lockkeeper::mysql {
namespace {

// Nothing is claimed or charged yet, so a session that is lost here leaves no doubt.
const Reply& ask(ServerSession& session, const std::string& statements, const std::string& display,
                 Instant deadline) {
  const Reply& reply = session.query(statements, deadline);
  if (reply.lost()) throw StoreUnavailable(display + ": " + reply.reason);
  if (reply.error != 0) throwFault(reply, display);
  return reply;
}

}  // namespace

ReadySession openSession(const ServerOptions& options, const Preparation& preparation,
                         std::shared_ptr<Clock> clock, sql::SocketWatch& watch, Instant deadline) {
  const std::string& display = options.server.display;
  ReadySession ready{std::make_unique<ServerSession>(options, std::move(clock), watch, deadline), {}};
  const auto send = [&](const std::string& statements) -> const Reply& {
    return ask(*ready.session, statements, display, deadline);
  };
  if (!preparation.setUp.empty()) send(preparation.setUp);
  sql::ServerSettings settings;
  for (const Reply::Row& row : send(std::string("SHOW GLOBAL VARIABLES WHERE ") + sql::judgedSettings).rows) {
    settings[row[0].value_or("")] = row[1].value_or("");
  }
  ready.durability = sql::judgeServer(std::move(settings), display);
  if (options.createTable && !preparation.schema.empty()) send(preparation.schema);
  if (!preparation.checkTable.empty()) send(preparation.checkTable);
  return ready;
}

}  // namespace lockkeeper::mysql
