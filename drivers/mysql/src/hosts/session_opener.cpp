#include "hosts/session_opener.h"

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

#include "lockkeeper/error.h"
#include "session/reply_fault.h"

namespace lockkeeper::mysql {
namespace {

// How long those who wait may stay with a server that another one has replaced, if no call finds out.
constexpr std::chrono::seconds lookEvery{5};

// After a look that has found no server: the search goes on where it was, if the next look comes soon.
constexpr std::chrono::seconds lookAgain{1};

}  // namespace

SessionOpener::SessionOpener(ServerOptions options, Preparation preparation, const Environment& environment)
    : options_(std::move(options)),
      preparation_(std::move(preparation)),
      environment_(environment),
      watch_(environment.clock) {
  if (options_.hosts.size() == 1) return;
  search_.emplace(
      options_,
      HostSearch::LogIn{[this](const ServerAddress& address, Instant deadline) {
                          return std::make_unique<ServerSession>(options_, address, environment_.clock,
                                                                 watch_, deadline);
                        },
                        [this](ServerSession& session, const ServerAddress& address, Instant deadline,
                               HostReport& report) { prepare(session, address, deadline, report); }},
      environment_.clock);
}

std::unique_ptr<ServerSession> SessionOpener::open(Instant deadline) {
  startWatch();
  std::unique_ptr<ServerSession> session;
  if (search_) {
    session = search_->open(deadline);
  } else {
    const ServerAddress& only = options_.hosts.front();
    HostReport report;
    session = std::make_unique<ServerSession>(options_, only, environment_.clock, watch_, deadline);
    prepare(*session, only, deadline, report);
  }
  if (session->lacksTable()) {
    // Only now: a host that is not the primary after all must not write anything by itself.
    const ServerAddress chosen{.host = {}, .port = 0, .display = display()};
    ask(*session, chosen, preparation_.schema, deadline);
    HostReport report;
    prepare(*session, chosen, deadline, report);
  }
  note(*session);
  return session;
}

void SessionOpener::lookForPrimary(Instant deadline) {
  const Instant now = clock().now();
  Instant due = nextLook_;
  if (now < due || !nextLook_.compare_exchange_strong(due, now + lookEvery)) return;
  try {
    static_cast<void>(open(deadline));
  } catch (const Error&) {
    nextLook_ = clock().now() + lookAgain;
  }
}

void SessionOpener::startWatch() {
  try {
    watch_.start();
  } catch (const std::system_error& error) {
    throw StoreUnavailable(display() + ": no thread to watch its sessions with: " + error.what());
  }
}

const Reply& SessionOpener::ask(ServerSession& session, const ServerAddress& address,
                                const std::string& statements, Instant deadline) const {
  const Reply& reply = session.query(statements, deadline);
  if (reply.error != 0) throwPreparationFault(reply, address.display, preparation_.schemaFile);
  return reply;
}

bool SessionOpener::findsNoTable(ServerSession& session, const ServerAddress& address,
                                 Instant deadline) const {
  if (!options_.createTable || preparation_.schema.empty()) return false;
  const Reply& reply = session.query(preparation_.readTable, deadline);
  if (reply.lost()) throwPreparationFault(reply, address.display);
  return reply.error == noSuchTable;
}

ServerSettings SessionOpener::pin(ServerSession& session, const ServerAddress& address,
                                  Instant deadline) const {
  std::vector<std::string> variables = judgedVariables();
  std::ranges::move(pinnedVariables(), std::back_inserter(variables));
  const std::string batch = pinScript(preparation_.rules) + ";" + askVariables(variables);
  ServerSettings settings;
  for (const Reply::Row& row : ask(session, address, batch, deadline).rows) {
    settings[row.at(0).value_or("")] = row.at(1).value_or("");
  }
  checkPinned(settings, preparation_.rules, address.display);
  return settings;
}

void SessionOpener::prepare(ServerSession& session, const ServerAddress& address, Instant deadline,
                            HostReport& report) {
  try {
    checkAndSetUp(session, address, deadline, report);
  } catch (const NotPrimary&) {
    // What a new session hears is true of the others with that server.
    const std::lock_guard held(mutex_);
    if (!report.server.empty() && report.server == server_) {
      server_.clear();
      ++term_;
    }
    throw;
  }
}

void SessionOpener::checkAndSetUp(ServerSession& session, const ServerAddress& address, Instant deadline,
                                  HostReport& report) {
  const std::string& name = address.display;
  ServerSettings settings = pin(session, address, deadline);
  if (isDirect(session.greetedId(), session.id())) {
    // MariaDB has no UUID, and older ones have no UID.
    std::string identity = settings["server_uuid"] + settings["server_uid"];
    if (identity.empty()) identity = settings["server_id"];
    session.setServer(identity + "@" + settings["hostname"] + ":" + settings["port"]);
  }
  if (preparation_.namesClient) {
    const std::string query = "SELECT HOST FROM information_schema.PROCESSLIST WHERE ID=CONNECTION_ID()";
    session.setClientName(ask(session, address, query, deadline).text(0));
  }
  report.server = session.server();
  report.group = settings["group_replication_group_name"];
  if (!report.group.empty()) {
    session.setInGroup();
    // What the tables of the performance schema say is for those who have been granted the right to see it.
    settings.merge(membershipIn(session.query(askMembership, deadline)));
  }
  const std::string consistency = settings["group_replication_consistency"];
  session.setFacts(judgeServer(std::move(settings), name));
  if (preparation_.forNamedLocks) {
    checkDirect(session.greetedId(), session.id(), name);
    if (!session.facts().severalNames) {
      throw ConfigError(name +
                        " is too old: GET_LOCK keeps several names from MySQL 5.7.5 and MariaDB 10.0.2 on");
    }
  }
  session.setLacksTable(findsNoTable(session, address, deadline));
  if (session.lacksTable()) return;
  if (!preparation_.checkTable.empty()) ask(session, address, preparation_.checkTable, deadline);
  if (session.inGroup()) reachMajority(session, address, consistency, deadline);
}

// A member that is cut off from its group is not told so, and takes itself for the primary: it grants named
// locks, and answers what it has read, for as long as that lasts.
void SessionOpener::reachMajority(ServerSession& session, const ServerAddress& address,
                                  const std::string& consistency, Instant deadline) {
  if (preparation_.readTable.empty() || consistency.empty()) {
    if (!preparation_.forNamedLocks) return;
    throw ConfigError(address.display +
                      " belongs to a replication group: to tell a primary that is cut off from the others, "
                      "fence=on is needed, and MySQL 8.0.14");
  }
  // This or more is what the server does anyway.
  const bool always = consistency.starts_with("BEFORE") && consistency != "BEFORE_ON_PRIMARY_FAILOVER";
  if (!always) ask(session, address, "SET SESSION group_replication_consistency='BEFORE'", deadline);
  // The group has answered before the server looks for the table, which the caller may be about to make.
  const Reply& read = session.query(preparation_.readTable, deadline);
  if (read.error != 0 && read.error != noSuchTable) {
    throwPreparationFault(read, address.display, preparation_.schemaFile);
  }
  if (always || preparation_.forNamedLocks) return;
  ask(session, address, "SET SESSION group_replication_consistency=DEFAULT", deadline);
}

void SessionOpener::fail(const Reply& reply) const { throwFault(reply, display(), preparation_.schemaFile); }

void SessionOpener::note(ServerSession& session) {
  const ServerFacts& facts = session.facts();
  {
    const std::lock_guard held(mutex_);
    if (!session.server().empty() && session.server() != server_) {
      server_ = session.server();
      ++term_;
    }
    session.setTerm(term_);
    if (facts_ == facts) return;
    facts_ = facts;
  }
  if (!preparation_.tellsDurability) return;
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
