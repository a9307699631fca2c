#include "watch/watch.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "lockkeeper/error.h"
#include "stores/marked_store.h"

namespace lockkeeper::migration {

Watch::Watch(StateStore& stateStore, std::shared_ptr<LockDriver> oldStore, const MigrationOptions& options,
             std::shared_ptr<Clock> clock, std::string id, Note note)
    : stateStore_(stateStore),
      options_(options),
      clock_(std::move(clock)),
      id_(std::move(id)),
      note_(std::move(note)),
      scan_(std::move(oldStore), options.heartbeat, clock_) {}

bool Watch::beat(const MigrationState& heard, const std::vector<OldLock>& seen, Instant deadline) {
  const Instant now = clock_->now();
  const Instant before = std::exchange(lastBeat_, now);
  if (now >= before + options_.lease) inTouchSince_ = now;
  if (!mayWatch(heard, now, before == Instant::min())) {
    if (std::exchange(watching_, false)) stop();
    report(heard, seen, deadline);
    return false;
  }
  watching_ = true;
  bool stepped = false;
  try {
    const MigrationState state = readAll(deadline);
    stateStore_.watch(id_, options_.lease, deadline);  // not before: who cannot read does not watch
    report(state, seen, deadline);
    stepped = state.version > 0 && step(state);
    failingSince_.reset();
  } catch (const std::exception& error) {  // a driver's own, too
    noteOnce(std::string("takes no step: ") + error.what());
    noteFailure(failingSince_);
  }
  if (clock_->now() < standAgainAt_) leave(deadline);
  return stepped;
}

// After a lease of failures, another member shall try.
void Watch::noteFailure(std::optional<Instant>& since) {
  const Instant now = clock_->now();
  if (!since) since = now;
  if (now >= *since + options_.lease) standAgainAt_ = now + options_.lease + options_.maxTtl;
}

// Processes that end soon should not watch, because whoever comes next begins anew. So if nobody does, those
// that have been here for long come first. A process that has just started may be the only one, unless the
// watcher has left a moment ago. A watcher is silent by our own clock: that of the store may be set back.
bool Watch::mayWatch(const MigrationState& heard, Instant now, bool isFirstBeat) {
  const bool first = isFirstBeat && heard.watcherStamp == 0;
  if (std::exchange(watcherStamp_, heard.watcherStamp) != heard.watcherStamp) watcherHeardAt_ = now;
  if (!heard.watcher.empty() && heard.watcher != id_ && now < watcherHeardAt_ + options_.lease) {
    nobodySince_.reset();
    return false;
  }
  if (watching_) return true;
  if (!nobodySince_) nobodySince_ = now;
  if (now < standAgainAt_) return false;
  return first || now >= inTouchSince_ + options_.lease + options_.maxTtl ||
         now >= *nobodySince_ + options_.lease;
}

void Watch::stop() {
  observation_.restart();
  scan_.interrupt();
  failingSince_.reset();
  scanFailingSince_.reset();
}

void Watch::leave(Instant deadline) {
  if (!std::exchange(watching_, false)) return;
  stop();
  // So long that all members hear of it, and that the next short command does not take the role before them.
  stateStore_.watch({}, 3 * options_.heartbeat, deadline);
}

MigrationState Watch::readAll(Instant deadline) {
  const Instant askedAt = clock_->now();
  MigrationState state = stateStore_.read(deadline);
  const Instant now = clock_->now();
  if (now >= lastRead_ + options_.lease) {  // members may have come and gone unseen
    observation_.restart();
    scan_.interrupt();
  }
  lastRead_ = askedAt;
  observation_.measure(state, askedAt, now);
  return state;
}

bool Watch::step(const MigrationState& state) {
  const Rules& wanted = state.target;
  if (state.current == wanted) {
    noted_.clear();
    scan_.interrupt();
    return false;
  }
  if (!isMember(state)) return false;
  const std::vector<Blocker> found = blockersOf(state, options_.observation);
  if (!found.empty()) {
    std::string all;
    for (const Blocker& blocker : found) all.append(all.empty() ? "" : "; ").append(blocker.what);
    noteOnce("stays in both on the way to " + quoted(wanted.text()) + ": " + all);
  }
  // Even while something else blocks, so that an outsider is told of in time.
  if (keysLeaveOldStore(state.current, wanted) && !lookedThrough(state, !found.empty())) return false;
  if (!found.empty()) return false;
  // Looking through the old store may have taken long, and others have joined meanwhile.
  const Instant soon = clock_->now() + options_.lease / 3;
  const MigrationState latest = readAll(soon);
  if (latest.version != state.version || !isMember(latest)) return false;
  if (!blockersOf(latest, options_.observation).empty()) return false;
  if (!stateStore_.commit(latest, soon)) return false;
  note_("the rules are now " + quoted(wanted.text()));
  return true;
}

// A state that has lost our own record may have lost those of others.
bool Watch::isMember(const MigrationState& state) const {
  return std::ranges::find(state.members, id_, &Member::id) != state.members.end();
}

// Whether the last part of the old store has been looked through now, and no outsider was found in any. A
// scan that has failed goes on later, and one that has found an outsider begins anew later.
bool Watch::lookedThrough(const MigrationState& state, bool blocked) {
  const Instant now = clock_->now();
  if (!scan_.underWay() || scan_.place().version != state.version) {
    if (now < scanAgainAt_ && (blocked || !clean_)) return false;
    scan_.begin(state);
  }
  clean_ = false;
  scanAgainAt_ = now + std::max(options_.observation / 4, options_.lease / 3);
  try {
    clean_ = !outsiderFound(state);
    scanFailingSince_.reset();
  } catch (const std::exception& error) {
    noteOnce(std::string("stays in both: the old store could not be looked through: ") + error.what());
    scan_.pause();
    noteFailure(scanFailingSince_);
  }
  return clean_ && scan_.complete();
}

bool Watch::outsiderFound(const MigrationState& state) {
  const Instant deadline = clock_->now() + options_.lease / 3;
  const bool resumed = !scan_.place().next.empty();
  const std::vector<OldLock> seen = scan_.goOn(state, deadline);
  if (!seen.empty()) {
    bool outsider = false;
    try {
      // Some holders may have joined since the state was read. If so many have, more may come behind them.
      outsider = report(readAll(deadline), seen, deadline) || seen.size() == mostOutsiders;
    } catch (...) {
      scan_.restart();
      throw;
    }
    if (outsider) {
      scan_.restart();
      return true;
    }
  }
  if (resumed || scan_.underWay()) stateStore_.scanned(scan_.place(), 4 * options_.lease, deadline);
  return false;
}

// Writes down an outsider among the holders of what was seen before `state` was read: a member joins before
// it takes a lock, and whoever has left is known for a while. True when its key is on its way to modern. Who
// does not watch has not read the members, and tells only of those that certainly are none.
bool Watch::report(const MigrationState& state, const std::vector<OldLock>& seen, Instant deadline) {
  const OldLock* outsider = nullptr;
  bool inTheWay = false;
  for (const OldLock& each : seen) {
    if (watching_ ? !each.owner.empty() && state.knows(each.owner) : isMarked(each.owner)) continue;
    const bool leaves = leavesOldStore(each.key, state);
    if (outsider == nullptr || (leaves && !inTheWay)) outsider = &each;
    inTheWay = inTheWay || leaves;
  }
  if (outsider != nullptr) stateStore_.sighted(outsider->key, inTheWay, deadline);
  return inTheWay;
}

void Watch::noteOnce(const std::string& message) {
  if (std::exchange(noted_, message) != message) note_(message);
}

}  // namespace lockkeeper::migration
