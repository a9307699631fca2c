#include "session/sessions.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "lockkeeper/error.h"

namespace lockkeeper::postgres {
namespace {

using std::chrono::milliseconds;

// When one server is known to take the writes, the others have so long to say that they do, too.
constexpr milliseconds longestWaitForOthers{250};

// A process that was told to end and does not, and nobody knows why, must not stop all others for longer.
constexpr std::chrono::minutes longestEnding{1};
constexpr std::size_t mostGivenUp = 64;

// Why none of them is fit: their own words, and whether the administrator has to mend all of them.
[[noreturn]] void throwNone(std::span<const std::exception_ptr> failures, const ServerOptions& options) {
  if (failures.size() == 1) std::rethrow_exception(failures.front());
  bool isConfig = true;
  std::string text = options.display + ": none of its hosts takes writes";
  for (const std::exception_ptr& each : failures) {
    try {
      std::rethrow_exception(each);
    } catch (const Error& error) {
      isConfig = isConfig && error.code() == ErrorCode::config;
      text += std::string("; ") + error.what();
    }
  }
  if (isConfig) throw ConfigError(text);
  throw StoreUnavailable(text);
}

}  // namespace

Sessions::Sessions(ServerOptions options, Tables tables, const Environment& environment)
    : options_(std::move(options)), tables_(std::move(tables)), environment_(environment) {
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
  if (session && !(isCurrent(*session) && session->usable())) session.reset();
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
  const std::vector<std::size_t> hosts = allHosts();
  std::optional<std::size_t> primary;
  {
    const std::lock_guard held(mutex_);
    primary = primary_;
  }
  std::unique_ptr<Session> session;
  const Instant now = clock().now();
  if (primary && hosts.size() > 1) {
    try {
      session = connect({&*primary, 1}, now + (deadline - now) / 2);
    } catch (const StoreUnavailable&) {
      forgetPrimary();
    }
  }
  if (!session) session = connect(hosts, deadline);
  makeTables(*session, deadline);
  return session;
}

void Sessions::lookForPrimary(Instant deadline) {
  if (options_.hosts.size() == 1) return;
  static_cast<void>(connect(allHosts(), deadline));
}

std::vector<std::size_t> Sessions::allHosts() const {
  std::vector<std::size_t> hosts(options_.hosts.size());
  std::iota(hosts.begin(), hosts.end(), std::size_t{0});
  return hosts;
}

std::unique_ptr<Session> Sessions::connect(std::span<const std::size_t> hosts, Instant deadline) {
  const Instant until = std::min(deadline, clock().now() + options_.connectTimeout);
  std::vector<std::unique_ptr<LogIn>> underWay;
  for (const std::size_t host : hosts)
    underWay.push_back(std::make_unique<LogIn>(options_, host, clock(), until));
  std::unique_ptr<LogIn> best;
  Instant end = until;
  std::vector<std::exception_ptr> failures;
  while (true) {
    for (auto& each : underWay) {
      each->proceed();
      if (!each->ended()) continue;
      if (each->failure()) {
        failures.push_back(each->failure());
      } else if (!each->facts().takesWrites) {
        failures.push_back(std::make_exception_ptr(
            NotPrimary(options_.hosts[each->host()].display +
                       " takes no writes, as a standby: locks need the server that does")));
      } else if (!best || each->facts().timeline > best->facts().timeline) {
        best = std::move(each);
        end = std::min(end, clock().now() + longestWaitForOthers);
      } else if (each->facts().timeline == best->facts().timeline) {
        throw StoreUnavailable(options_.hosts[best->host()].display + " and " +
                               options_.hosts[each->host()].display +
                               " both take writes: all hosts but one must be standbys");
      }
      each.reset();
    }
    std::erase(underWay, nullptr);
    const Instant now = clock().now();
    if (underWay.empty() || (best && now >= end)) break;
    std::vector<pollfd> sockets;
    Instant wakeAt = end;
    for (const auto& each : underWay) {
      sockets.push_back(each->waitsFor());
      wakeAt = std::min(wakeAt, each->wakesAt());
    }
    pollUntil(sockets, clock(), wakeAt);
  }
  if (!best) throwNone(failures, options_);
  return accept(*best);
}

std::unique_ptr<Session> Sessions::accept(LogIn& logIn) {
  const ServerAddress& server = options_.hosts[logIn.host()];
  const ServerFacts& facts = logIn.facts();
  auto session = std::make_unique<Session>(logIn.takeHandle(), facts, options_.display, tables_.file,
                                           environment_.clock);
  bool isAnother = false;
  {
    const std::lock_guard held(mutex_);
    if (facts.timeline < timeline_)
      throw NotPrimary(server.display + " takes writes, but another host has taken over from it");
    isAnother = known_ &&
                (*known_ != logIn.host() || facts.timeline != timeline_ || facts.started != facts_->started);
    if (isAnother) ++term_;
    known_ = primary_ = logIn.host();
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
  session.transact(statements, deadline);
  hasTables_ = true;
}

Promises Sessions::promises() const {
  const std::lock_guard held(mutex_);
  if (!facts_) return {FencePromise::whileStoreKeepsWrites, "PostgreSQL: not connected yet"};
  const bool isKept = facts_->survivesCrash && !facts_->mayLag;
  return {isKept ? FencePromise::durable : FencePromise::whileStoreKeepsWrites, durabilityOf(*facts_)};
}

}  // namespace lockkeeper::postgres
