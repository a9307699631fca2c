#include "version/queue_place.h"

#include <algorithm>
#include <utility>

#include "lockkeeper/error.h"
#include "session/lock_name.h"
#include "session/reply_fault.h"
#include "session/statements/sql_text.h"

namespace lockkeeper::mysql {
namespace {

using std::chrono::seconds;

// How long the name stays with a host that has vanished, or with a process that stands still. The first asks
// much more often.
constexpr seconds longestSilence{1};

static_assert(QueuePlace::longestLook < longestSilence);

// A waiter sees within that what others have found out about the server, that the key is free, and a stop
// that has no file to wake it up with.
constexpr seconds longestSleep{1};

// What a server that is well needs to let a name go. A grant does not wait longer for that.
constexpr std::chrono::milliseconds longestLeave{500};

}  // namespace

QueuePlace::QueuePlace(SessionPool::Use& session, SessionPool& cancelling, std::string name,
                       std::chrono::milliseconds ioTimeout, bool isReplaceable)
    : session_(session),
      cancelling_(cancelling),
      name_(std::move(name)),
      ioTimeout_(ioTimeout),
      isReplaceable_(isReplaceable) {}

QueuePlace::~QueuePlace() {
  if (mayHaveName_) session_.close();
}

bool QueuePlace::enter(Instant deadline, Instant until, const std::stop_token& stop, const WakeUp& wakeUp,
                       const std::function<bool()>& getsPast) {
  try {
    session_.ask(idleLimit(longestSilence), deadline);
    return getName(until, stop, wakeUp, getsPast);
  } catch (const ConfigError&) {
    return true;  // What stands between us and the server knows no names: then all are first.
  } catch (const Refused&) {
    // The same, with a number of its own; unless that has ended a wait.
    if (session_.clock().now() >= deadline) throw;
    return true;
  } catch (const OutcomeUnknown& lost) {
    throw StoreUnavailable(lost.what());  // the key has not been asked for
  }
}

bool QueuePlace::getName(Instant until, const std::stop_token& stop, const WakeUp& wakeUp,
                         const std::function<bool()>& getsPast) {
  const Clock& clock = session_.clock();
  // The server counts whole seconds: it must not give up before we do.
  const seconds wait = std::chrono::ceil<seconds>(std::max(until - clock.now(), Instant::duration{0}));
  const std::string statement = "SELECT GET_LOCK('" + name_ + "'," + std::to_string(wait.count() + 1) + ")";
  mayHaveName_ = true;
  session_.session().send(statement, clock.now() + ioTimeout_);
  while (!session_.session().await(std::min(until, clock.now() + longestSleep), wakeUp.file())) {
    if (clock.now() >= until || stop.stop_requested()) {
      const Instant end = clock.now() + ioTimeout_;
      // The wait ends a little later than the server says so.
      if (cancelling_.cancel(session_.session(), end)) session_.session().await(end);
      return false;
    }
    if (getsPast()) return false;  // a grant waits for no cancellation: the session is closed
    if (session_.session().readable()) continue;
    if (isReplaceable_) session_.lookForPrimary(std::min(until, clock.now() + longestLook));
    checkServer();
  }
  return session_.receive(statement, clock.now() + ioTimeout_).number(0) == 1U;
}

void QueuePlace::checkServer() const {
  if (session_.isCurrent()) return;
  throw StoreUnavailable(cancelling_.display() + ": another server takes the writes now");
}

void QueuePlace::leave() noexcept {
  if (!mayHaveName_) return;
  try {
    const Reply& reply = session_.ask("SELECT RELEASE_LOCK('" + name_ + "');" + noIdleLimit,
                                      session_.clock().now() + std::min(ioTimeout_, longestLeave));
    // Behind a proxy it may have been another session that was asked.
    mayHaveName_ = reply.number(0) != 1U;
  } catch (const std::exception&) {
    // The session is closed, which lets the name go.
  }
}

std::string queueName(const std::string& database, const std::string& table, std::string_view key) {
  return hashedName("queue", database + '\n' + table + '\n' + std::string(key));
}

}  // namespace lockkeeper::mysql
