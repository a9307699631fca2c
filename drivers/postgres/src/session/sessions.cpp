#include "session/sessions.h"

#include <algorithm>
#include <utility>

#include "lockkeeper/error.h"
#include "lockkeeper/libpq/log_in.h"
#include "session/fault.h"

namespace lockkeeper::postgres {
namespace {

using std::chrono::milliseconds;

// A process that was told to end and does not, and nobody knows why, must not stop all others for longer.
constexpr std::chrono::minutes longestEnding{1};
constexpr std::size_t mostGivenUp = 64;

std::string placeOf(const std::string& file) {
  return "drivers/postgres/schema/" + file + " (installed as share/lockkeeper/postgres/" + file + ")";
}

std::string schemaHint(const std::string& file) {
  return file.empty() ? "" : ": run " + placeOf(file) + ", or add createTable=true to the store's URI";
}

}  // namespace

Sessions::Sessions(ServerOptions options, Tables tables, const Environment& environment)
    : options_(std::move(options)),
      tables_(std::move(tables)),
      store_{.display = options_.display, .missingTable = schemaHint(tables_.file)},
      environment_(environment) {
  idle_.reserve(options_.connections);  // A session can be put back where no memory is left.
}

Sessions::Use Sessions::use(Instant deadline) {
  {
    std::unique_lock held(mutex_);
    while (used_ >= options_.connections) {
      if (clock().now() >= deadline)
        throw StoreUnavailable(options_.display + ": all " + std::to_string(options_.connections) +
                               " connections stayed in use");
      clock().wait(held, returned_, deadline);
    }
    ++used_;
  }
  std::unique_ptr<Session> session;
  try {
    session = takeIdle();
    if (!session) session = open(deadline);
    prepare(*session, deadline);
  } catch (const OutcomeUnknown& error) {
    putBack(std::move(session));
    throw StoreUnavailable(error.what());  // Nothing was asked for yet.
  } catch (...) {
    putBack(std::move(session));
    throw;
  }
  return Use(*this, std::move(session));
}

void Sessions::prepare(Session& session, Instant deadline) {
  if (!session.isDirect()) return;
  if (anyGivenUp_) endGivenUp(session, deadline);
  if (!listens_ || session.listens()) return;
  session.command("LISTEN \"" + channel_ + "\"", deadline);
  session.setListens();
}

// The server may read late what a session has sent before it was closed: a claim, which would take a key for
// nobody. A pooler's sessions cannot be told apart: see Session::latest().
void Sessions::endGivenUp(Session& session, Instant deadline) {
  std::vector<GivenUp> ending;
  {
    const std::lock_guard held(mutex_);
    std::erase_if(givenUp_,
                  [now = clock().now()](const GivenUp& each) { return now > each.since + longestEnding; });
    ending = givenUp_;
  }
  std::string which = "false";
  for (const GivenUp& each : ending) which += " OR " + each.backend;
  const auto left = std::chrono::floor<milliseconds>(deadline - clock().now()).count();
  // Materialized: the planner may otherwise call the function for sessions of others, too.
  const Result result = session.command(
      "WITH given_up AS MATERIALIZED (SELECT a.pid FROM pg_stat_activity AS a WHERE a.usename = session_user "
      "AND (" +
          which + ")) SELECT count(*) FROM given_up WHERE NOT pg_terminate_backend(pid, " +
          std::to_string(std::max<std::int64_t>(left / 2, 1)) + ")",
      deadline);
  if (result.number(0, 0) != 0) throw StoreUnavailable(options_.display + ": a statement is not ended yet");
  const std::lock_guard held(mutex_);
  std::erase_if(givenUp_, [&](const GivenUp& each) {
    return std::ranges::find(ending, each.backend, &GivenUp::backend) != ending.end();
  });
  anyGivenUp_ = !givenUp_.empty();
}

void Sessions::listen(std::string channel, std::function<void(std::string_view text)> heard) {
  const std::lock_guard held(mutex_);
  if (listens_) return;
  channel_ = std::move(channel);
  heard_ = std::move(heard);
  listens_ = true;
}

void Sessions::hear() noexcept {
  const std::lock_guard held(mutex_);
  for (const auto& each : idle_) hear(*each);
}

bool Sessions::hear(Session& session) noexcept {
  bool any = false;
  if (!session.listens()) return any;
  try {
    session.awaitNotifications(
        [&](std::string_view /*channel*/, std::string_view text) {
          any = true;
          heard_(text);
        },
        clock().now());
  } catch (const std::exception&) {
    // The session has ended: usable() says so.
  }
  return any;
}

std::unique_ptr<Session> Sessions::takeIdle() {
  std::vector<std::unique_ptr<Session>> dead;  // Closed without the mutex.
  const std::lock_guard held(mutex_);
  while (!idle_.empty()) {
    auto session = std::move(idle_.back());
    idle_.pop_back();
    // What can be read may be a notification.
    if (isCurrent(*session) && (session->usable() || (hear(*session) && session->usable()))) return session;
    dead.push_back(std::move(session));
  }
  return nullptr;
}

void Sessions::putBack(std::unique_ptr<Session> session) noexcept {
  if (session && session->isGivenUp()) {
    const std::lock_guard held(mutex_);
    if (givenUp_.size() == mostGivenUp) givenUp_.erase(givenUp_.begin());
    givenUp_.push_back({session->facts().backend, clock().now()});
    anyGivenUp_ = true;
  } else if (session) {
    hear(*session);
  }
  // Whether the server has ended it meanwhile, takeIdle() asks.
  if (session && (session->isLost() || !isCurrent(*session))) session.reset();
  {
    const std::lock_guard held(mutex_);
    --used_;
    if (session) idle_.push_back(std::move(session));
  }
  returned_.notify_one();
}

void Sessions::forgetPrimary() {
  const std::lock_guard held(mutex_);
  primary_.reset();
  ++term_;
}

std::unique_ptr<Session> Sessions::open(Instant deadline) {
  std::optional<std::size_t> primary;
  if (options_.hosts.size() > 1) {
    const std::lock_guard held(mutex_);
    primary = primary_;
  }
  std::unique_ptr<Session> session;
  const Instant now = clock().now();
  if (primary) {
    try {
      session = connect(primary, now + (deadline - now) / 2);
    } catch (const StoreUnavailable&) {
      forgetPrimary();
    }
  }
  if (!session) session = connect({}, deadline);
  makeTables(*session, deadline);
  return session;
}

void Sessions::lookForPrimary(Instant deadline) { static_cast<void>(connect({}, deadline)); }

std::unique_ptr<Session> Sessions::connect(std::optional<std::size_t> only, Instant deadline) {
  libpq::LoggedIn logIn = libpq::logIn(options_, only, Session::pins(), clock(),
                                       std::min(deadline, clock().now() + options_.connectTimeout));
  const std::size_t host = logIn.host;
  const libpq::ServerFacts facts = logIn.facts;
  auto session = std::make_unique<Session>(std::move(logIn), store_, environment_.clock);
  bool isAnother = false;
  {
    const std::lock_guard held(mutex_);
    if (facts.timeline < timeline_)
      throw NotPrimary(options_.hosts[host].display +
                       " takes writes, but another host has taken over from it");
    isAnother =
        known_ && (*known_ != host || facts.timeline != timeline_ || facts.started != facts_->started);
    if (isAnother) ++term_;
    known_ = primary_ = host;
    timeline_ = facts.timeline;
    facts_ = facts;
    session->setTerm(term_);
  }
  if (isAnother && onNewPrimary_) onNewPrimary_();
  return session;
}

// Two clients that make the same table at once would disturb each other in the catalogue.
void Sessions::makeTables(Session& session, Instant deadline) {
  if (!options_.createTable || hasTables_) return;
  std::vector<Statement> statements{{"SELECT pg_advisory_xact_lock(7598259032842891)"}};
  for (std::size_t at = 0; at < tables_.script.size();) {
    const std::size_t end = tables_.script.find(";\n", at);
    statements.push_back({std::string_view(tables_.script).substr(at, end - at)});
    at = end == std::string::npos ? end : end + 2;
  }
  try {
    session.transact(statements, deadline);
  } catch (const ConfigError& error) {
    throw ConfigError(std::string(error.what()) +
                      ": createTable=true needs an account that may create tables in schema " +
                      options_.schema + "; or run " + placeOf(tables_.file) + " as another one");
  }
  hasTables_ = true;
}

Promises Sessions::promises() const {
  const std::lock_guard held(mutex_);
  if (!facts_) return {FencePromise::whileStoreKeepsWrites, "PostgreSQL: not connected yet"};
  const bool isKept = facts_->survivesCrash && !facts_->mayLag;
  std::string text =
      facts_->survivesCrash
          ? "PostgreSQL, flushed at each commit: survives a crash and a power loss of the server"
          : "PostgreSQL with fsync or full_page_writes off: a crash of the server's machine may "
            "undo commits or damage the database";
  if (facts_->mayLag) text += "; an asynchronous standby that takes over may lack the last of them";
  return {isKept ? FencePromise::durable : FencePromise::whileStoreKeepsWrites, text};
}

}  // namespace lockkeeper::postgres
