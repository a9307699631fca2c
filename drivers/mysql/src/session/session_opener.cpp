#include "session/session_opener.h"

#include <utility>

#include "lockkeeper/error.h"
#include "session/reply_fault.h"

namespace lockkeeper::mysql {

SessionOpener::SessionOpener(ServerOptions options, Preparation preparation, const Environment& environment)
    : options_(std::move(options)),
      preparation_(std::move(preparation)),
      environment_(environment),
      watch_(environment.clock) {}

std::unique_ptr<ServerSession> SessionOpener::open(Instant deadline) {
  auto session = std::make_unique<ServerSession>(options_, environment_.clock, watch_, deadline);
  // Nothing is claimed or charged yet, so a session that is lost here leaves no doubt.
  const auto ask = [&](const std::string& statements) -> const Reply& {
    const Reply& reply = session->query(statements, deadline);
    if (reply.lost()) throw StoreUnavailable(display() + ": " + reply.reason);
    if (reply.error != 0) fail(reply);
    return reply;
  };
  if (!preparation_.setUp.empty()) ask(preparation_.setUp);
  ServerSettings settings;
  for (const Reply::Row& row : ask(judgedSettings).rows) {
    settings[row.at(0).value_or("")] = row.at(1).value_or("");
  }
  if (isDirect(session->greetedId(), session->id())) {
    // MariaDB has no UUID.
    session->setServer(settings["server_uuid"] + settings["server_uid"] + "@" + settings["hostname"] + ":" +
                       settings["port"]);
  }
  const ServerFacts facts = judgeServer(std::move(settings), display());
  if (preparation_.forNamedLocks) {
    checkDirect(session->greetedId(), session->id(), display());
    if (!facts.severalNames) {
      throw ConfigError(display() +
                        " is too old: GET_LOCK keeps several names from MySQL 5.7.5 and MariaDB 10.0.2 on");
    }
  }
  note(facts);
  if (options_.createTable && !preparation_.schema.empty()) ask(preparation_.schema);
  if (!preparation_.checkTable.empty()) ask(preparation_.checkTable);
  return session;
}

void SessionOpener::fail(const Reply& reply) const { throwFault(reply, display(), preparation_.schemaFile); }

void SessionOpener::note(const ServerFacts& facts) {
  {
    const std::lock_guard held(mutex_);
    if (facts_ == facts) return;
    facts_ = facts;
  }
  if (!preparation_.tells) return;
  environment_.tell({.kind = EventKind::noted, .store = display(), .text = facts.durability});
}

std::optional<ServerFacts> SessionOpener::facts() const {
  const std::lock_guard held(mutex_);
  return facts_;
}

FencePromise SessionOpener::fencePromise() const {
  const auto known = facts();
  const bool kept = known && known->durable && !known->replicaMayLag;
  return kept ? FencePromise::durable : FencePromise::whileStoreKeepsWrites;
}

std::string SessionOpener::durability() const {
  const auto known = facts();
  return known ? known->durability : "InnoDB: not connected yet";
}

}  // namespace lockkeeper::mysql
