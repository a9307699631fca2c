#include "getlock/fence_counter.h"

#include <Poco/SHA2Engine.h>

#include <utility>

#include "getlock/getlock_session.h"
#include "getlock/getlock_statements.h"
#include "getlock/lock_name.h"
#include "lockkeeper/error.h"
#include "session/reply_fault.h"
#include "session/session_pool.h"

namespace lockkeeper::mysql {
namespace {

GetLockOptions read(const StoreUri& uri) {
  uri.allowOnly({"caFile", "connectTimeout", "createTable", "ioTimeout", "passwordFile", "socket", "tls"});
  return {ServerOptions::fromUri(uri)};
}

// The row must not tell a reader of the table what would let him release the lock.
std::string digestOf(const Token& token) {
  Poco::SHA2Engine engine(Poco::SHA2Engine::SHA_256);
  engine.update(token.hex());
  return Poco::DigestEngine::digestToHex(engine.digest());
}

}  // namespace

struct FenceCounter::State {
  State(GetLockOptions given, std::shared_ptr<Clock> clock)
      : options(std::move(given)),
        watch(clock),
        sessions(
            [this, clock](Instant deadline) { return openForLocks(options, clock, watch, deadline).session; },
            1, options.server.display, clock) {}

  const GetLockOptions options;
  sql::SocketWatch watch;
  SessionPool sessions;
};

FenceCounter::FenceCounter(const StoreUri& uri, const Environment& environment)
    : state_(std::make_unique<State>(read(uri), environment.clock)) {}

FenceCounter::~FenceCounter() {
  // Closing an inherited session properly would close the parent's: leaking it is right.
  if (forkGuard_.inherited()) static_cast<void>(state_.release());
}

Fence FenceCounter::next(const Claim& claim, bool resend, Instant deadline) {
  const auto fence =
      ask(statements::drawFence(lockName(claim.key), digestOf(claim.token), resend, claim.owner), deadline);
  if (!fence) throw ProtocolError(state_->options.server.display + ": the server answered no fence");
  return *fence;
}

std::optional<Fence> FenceCounter::last(std::string_view key, Instant deadline) {
  return ask(statements::lastFence(lockName(key)), deadline);
}

std::optional<Fence> FenceCounter::ask(const std::string& statement, Instant deadline) {
  forkGuard_.check();
  SessionPool::Use use(state_->sessions, deadline);
  const Reply& reply = use.session().query(statement, deadline);
  if (!reply.lost()) use.keep();
  if (reply.error != 0) throwFault(reply, state_->options.server.display);
  return reply.number(0);
}

}  // namespace lockkeeper::mysql
