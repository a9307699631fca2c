#include "getlock/fence_counter.h"

#include "getlock/session/getlock_statements.h"
#include "hosts/session_opener.h"
#include "hosts/session_pool.h"
#include "lockkeeper/error.h"
#include "schema.h"
#include "session/lock_name.h"

namespace lockkeeper::mysql {
namespace {

ServerOptions read(const StoreUri& uri) {
  allowOnly(uri, {"connectTimeout", "createTable", "ioTimeout"});
  return ServerOptions::fromUri(uri);
}

}  // namespace

struct FenceCounter::State {
  State(const ServerOptions& options, std::size_t most, const Environment& environment)
      : opener(options,
               {.rules = statements::sessionRules,
                .schema = getlockSchema,
                .checkTable = statements::checkFences(),
                .schemaFile = "getlock.sql",
                .readTable = statements::readFences()},
               environment),
        sessions(opener, most) {}

  SessionOpener opener;
  SessionPool sessions;
};

FenceCounter::FenceCounter(const StoreUri& uri, const Environment& environment)
    : FenceCounter(read(uri), 1, environment) {}

FenceCounter::FenceCounter(const ServerOptions& options, std::size_t sessions, const Environment& environment)
    : state_(std::make_unique<State>(options, sessions, environment)) {}

FenceCounter::~FenceCounter() {
  // Closing an inherited session properly would close the parent's: leaking it is right.
  if (forkGuard_.inherited()) static_cast<void>(state_.release());
}

Fence FenceCounter::next(const Claim& claim, bool resend, Instant deadline) {
  return next(claim, resend, 1, 0, deadline).first;
}

FenceCounter::Drawn FenceCounter::next(const Claim& claim, bool resend, std::uint32_t count,
                                       std::uint64_t session, Instant deadline) {
  forkGuard_.check();
  SessionPool::Use use(state_->sessions, deadline);
  const Reply& reply = use.ask(statements::drawFence(claim, resend, count, session), deadline);
  use.keep();
  if (reply.insertId == 0) {
    throw ProtocolError(state_->opener.display() + ": the server answered no fence");
  }
  return {reply.insertId, use.session().server()};
}

std::optional<Fence> FenceCounter::last(std::string_view key, Instant deadline) {
  forkGuard_.check();
  SessionPool::Use use(state_->sessions, deadline);
  const Reply& reply = use.ask(statements::lastFence(lockName(key)), deadline);
  use.keep();
  return reply.number(0);
}

FencePromise FenceCounter::promise() const { return state_->opener.fencePromise(); }

}  // namespace lockkeeper::mysql
