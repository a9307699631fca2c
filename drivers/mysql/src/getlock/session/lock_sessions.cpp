#include "getlock/session/lock_sessions.h"

#include <algorithm>
#include <utility>

#include "lockkeeper/error.h"

namespace lockkeeper::mysql {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::variant<LockSessions::Use, Busy> LockSessions::forClaim(std::string_view name, const Token& token,
                                                             seconds idleTimeout, Instant deadline) {
  for (Lock held(mutex_);;) {
    LockSession* session = owning(name, token);
    const auto found = names_.find(name);
    LockSession* const holder = found == names_.end() ? session : found->second.session;
    if (holder != nullptr && !holder->inUse && closeIfDead(*holder)) continue;
    if (session == nullptr && holder != nullptr) {
      return Busy{std::chrono::ceil<milliseconds>(found->second.end - now())};
    }
    if (session == nullptr) session = best(idleTimeout, Fitness::good, Fitness::emptySameTimeout);
    if (session == nullptr && !full()) return open(held, deadline);
    if (session == nullptr) session = best(idleTimeout, Fitness::crowded, Fitness::crowded);
    if (session != nullptr && !session->inUse) {
      if (auto use = tryBegin(held, *session)) return std::move(*use);
      continue;
    }
    if (std::ranges::none_of(sessions_, [](const auto& each) { return each->inUse; })) {
      throw StoreUnavailable(display() + ": all " + std::to_string(most_) +
                             " sessions hold locks of other ttls, or wait for the server; connections=… in "
                             "the store's URI allows more");
    }
    awaitReturn(held, deadline);
  }
}

std::optional<LockSessions::Use> LockSessions::forWaiting(seconds idleTimeout, Instant deadline) {
  for (Lock held(mutex_);;) {
    const auto waiting = std::ranges::count_if(sessions_, [](const auto& each) { return each->waiting; });
    if (static_cast<std::size_t>(waiting) >= most_ / 2) return std::nullopt;
    if (LockSession* const session = best(idleTimeout, Fitness::empty, Fitness::emptySameTimeout)) {
      session->waiting = true;
      if (auto use = tryBegin(held, *session)) return use;
    } else if (full()) {
      return std::nullopt;
    } else {
      return open(held, deadline, true);
    }
  }
}

std::optional<LockSessions::Use> LockSessions::holding(std::string_view name, const Token& token,
                                                       Instant deadline) {
  for (Lock held(mutex_);;) {
    LockSession* const session = owning(name, token);
    if (session == nullptr) return std::nullopt;
    if (session->inUse) {
      awaitReturn(held, deadline);
    } else if (auto use = tryBegin(held, *session)) {
      return use;
    }
  }
}

LockSessions::Use LockSessions::forQuery(std::string_view name, Instant deadline) {
  for (Lock held(mutex_);;) {
    LockSession* session = nullptr;
    if (const auto found = names_.find(name); found != names_.end() && found->second.end <= now()) {
      session = found->second.session;
      if (!session->inUse && closeIfDead(*session)) continue;
    }
    if (session == nullptr) session = best(seconds{0}, Fitness::empty, Fitness::emptySameTimeout);
    if (session == nullptr && !full()) return open(held, deadline);
    if (session == nullptr) session = best(seconds{0}, Fitness::crowded, Fitness::good);
    if (session == nullptr || session->inUse) {
      awaitReturn(held, deadline);
    } else if (auto use = tryBegin(held, *session)) {
      return std::move(*use);
    }
  }
}

std::optional<std::pair<LockSession*, std::optional<LockSessions::Use>>> LockSessions::takeAny(
    std::span<LockSession* const> wanted) {
  const Lock held(mutex_);
  for (LockSession* const each : wanted) {
    const bool exists =
        std::ranges::any_of(sessions_, [each](const auto& session) { return session.get() == each; });
    if (!exists || (!each->inUse && closeIfDead(*each))) return std::pair(each, std::nullopt);
    if (!each->inUse) return std::pair(each, std::optional(begin(*each)));
  }
  return std::nullopt;
}

std::stop_token LockSessions::nextReturn() {
  const std::lock_guard held(mutex_);
  if (!nextReturn_.stop_possible()) nextReturn_ = std::stop_source();
  return nextReturn_.get_token();
}

std::optional<HeldName> LockSessions::heldUnder(std::string_view name) {
  const std::lock_guard held(mutex_);
  const auto found = names_.find(name);
  return found == names_.end() ? std::nullopt : std::optional(found->second);
}

bool LockSessions::holds(const LockSession& session, std::string_view name, const Token& token) {
  const std::lock_guard held(mutex_);
  return find(session, name, token) != names_.end();
}

std::vector<std::string> LockSessions::names(const LockSession& session) {
  const std::lock_guard held(mutex_);
  std::vector<std::string> names;
  for (const HeldName* each : session.held) names.push_back(each->name);
  return names;
}

void LockSessions::add(HeldName held) {
  const std::lock_guard guard(mutex_);
  // The server frees a name and gives it to the next session before the first one reads that it is free.
  if (const auto old = names_.find(held.name); old != names_.end()) {
    std::erase(old->second.session->held, &old->second);
    names_.erase(old);
  }
  LockSession& session = *held.session;
  session.firstEnd = std::min(session.firstEnd, held.end);
  std::string name = held.name;
  session.held.push_back(&names_.emplace(std::move(name), std::move(held)).first->second);
}

void LockSessions::remove(const LockSession& session, std::string_view name, const Token& token) {
  const std::lock_guard guard(mutex_);
  const auto found = find(session, name, token);
  if (found == names_.end()) return;
  std::erase(found->second.session->held, &found->second);
  names_.erase(found);
}

bool LockSessions::setFence(std::string_view name, const Token& token, std::uint64_t sessionId, Fence fence) {
  const std::lock_guard guard(mutex_);
  const auto found = names_.find(name);
  if (found == names_.end()) return false;
  HeldName& held = found->second;
  if (held.token != token || held.sessionId != sessionId) return false;
  held.fence = fence;
  return true;
}

bool LockSessions::extend(const LockSession& session, std::string_view name, const Token& token,
                          Instant end) {
  const std::lock_guard guard(mutex_);
  const auto found = find(session, name, token);
  if (found == names_.end()) return false;
  found->second.end = end;
  Instant& firstEnd = found->second.session->firstEnd;
  firstEnd = Instant::max();
  for (const HeldName* each : session.held) firstEnd = std::min(firstEnd, each->end);
  return true;
}

void LockSessions::endLease(std::string_view name, const Token& token) {
  const std::lock_guard guard(mutex_);
  const auto found = names_.find(name);
  if (found == names_.end() || found->second.token != token) return;
  found->second.end = now();
  found->second.session->firstEnd = std::min(found->second.session->firstEnd, found->second.end);
}

void LockSessions::setUnseen(LockSession& session, std::optional<UnseenClaim> claim) {
  const std::lock_guard guard(mutex_);
  session.unseen = std::move(claim);
}

void LockSessions::prepare(LockSession& session, seconds idleTimeout) {
  const std::lock_guard guard(mutex_);
  if (const Instant time = now(); time >= session.firstEnd) {
    session.firstEnd = Instant::max();
    std::erase_if(session.held, [&](const HeldName* each) {
      session.firstEnd = std::min(session.firstEnd, time < each->end ? each->end : Instant::max());
      if (time < each->end) return false;
      session.toFree.push_back(each->name);
      names_.erase(names_.find(each->name));
      return true;
    });
  }
  session.begin(idleTimeout);
}

void LockSessions::putBack(LockSession& session) {
  Lock held(mutex_);
  session.inUse = false;
  session.waiting = false;
  const std::unique_ptr<LockSession> closing = session.retired ? takeOut(session) : nullptr;
  notifyReturn(held);
}

void LockSessions::close(LockSession& session) {
  Lock held(mutex_);
  const std::unique_ptr<LockSession> closing = takeOut(session);
  // When one is dead they mostly all are, and their holders are to hear of it now.
  for (std::size_t i = sessions_.size(); i-- > 0;) {
    if (!sessions_[i]->inUse) closeIfDead(*sessions_[i]);
  }
  notifyReturn(held);
}

void LockSessions::retire(const ServerSession& server) {
  Lock held(mutex_);
  retireAll([&](const ServerSession& each) { return &each == &server || each.reaches(server); });
  notifyReturn(held);
}

template <class IsFormer>
void LockSessions::retireAll(IsFormer isFormer) {
  for (std::size_t i = sessions_.size(); i-- > 0;) {
    LockSession& each = *sessions_[i];
    if (!each.server || !isFormer(*each.server)) continue;
    each.retired = true;
    loseAll(each);
    if (!each.inUse) {
      takeOut(each);
    } else if (each.waiting) {
      // Or it would stay in a queue that leads nowhere for as long as its claim may wait.
      each.server->cut();
    }
  }
}

void LockSessions::loseAll(LockSession& session) {
  std::vector<Token> lost;
  for (const HeldName* each : session.held) {
    lost.push_back(each->token);
    names_.erase(names_.find(each->name));
  }
  session.held.clear();
  lossListeners_.claimsLost(lost);
}

std::unique_ptr<LockSession> LockSessions::takeOut(LockSession& session) {
  loseAll(session);
  const auto place =
      std::ranges::find_if(sessions_, [&](const auto& each) { return each.get() == &session; });
  std::unique_ptr<LockSession> taken = std::move(*place);
  sessions_.erase(place);
  return taken;
}

bool LockSessions::closeIfDead(LockSession& session) {
  const bool dead = session.dead(now());
  if (dead) takeOut(session);
  return dead;
}

bool LockSessions::full() {
  if (sessions_.size() < most_) return false;
  for (std::size_t i = sessions_.size(); i-- > 0;) {
    if (!sessions_[i]->inUse) closeIfDead(*sessions_[i]);
  }
  return sessions_.size() >= most_;
}

LockSessions::Fitness LockSessions::fitness(const LockSession& session, seconds idleTimeout,
                                            Instant time) const {
  if (session.inUse || (session.replyDue && !session.server->readable())) return Fitness::none;
  const bool alike = session.idleTimeout == idleTimeout;
  if (session.held.empty() || (time >= session.firstEnd && time >= session.lastEnd())) {
    return alike ? Fitness::emptySameTimeout : Fitness::empty;
  }
  if (!alike && idleTimeout != seconds{0}) return Fitness::none;
  // Young: none has used up more than a quarter of its lease.
  return alike && session.firstEnd - time >= idleTimeout * 3 / 4 ? Fitness::good : Fitness::crowded;
}

LockSession* LockSessions::best(seconds idleTimeout, Fitness least, Fitness most) {
  const Instant time = now();
  LockSession* chosen = nullptr;
  Fitness highest = Fitness::none;
  for (const auto& session : sessions_) {
    const Fitness its = fitness(*session, idleTimeout, time);
    if (its < least || its > most || its <= highest) continue;
    highest = its;
    chosen = session.get();
    if (highest == most) break;
  }
  return chosen;
}

// Also the session that holds the name for a lease that has ended: no other can get it.
LockSession* LockSessions::owning(std::string_view name, const Token& token) const {
  if (const auto found = names_.find(name); found != names_.end()) {
    const HeldName& held = found->second;
    return held.token == token || held.end <= now() ? held.session : nullptr;
  }
  const auto asked = std::ranges::find_if(sessions_, [&](const auto& session) {
    return session->unseen && session->unseen->name == name && session->unseen->token == token;
  });
  return asked == sessions_.end() ? nullptr : asked->get();
}

// The server may have given the name to another session of ours meanwhile, when this one is dying.
LockSessions::Names::iterator LockSessions::find(const LockSession& session, std::string_view name,
                                                 const Token& token) {
  const auto found = names_.find(name);
  if (found == names_.end()) return found;
  const HeldName& held = found->second;
  return held.token == token && held.session == &session ? found : names_.end();
}

LockSessions::Use LockSessions::begin(LockSession& session) {
  session.inUse = true;
  return {*this, session};
}

// Most are alive, and to ask the socket is a system call, during which others can use the mutex.
std::optional<LockSessions::Use> LockSessions::tryBegin(Lock& held, LockSession& session) {
  if (session.replyDue || session.timedOut(now())) {
    if (closeIfDead(session)) return std::nullopt;
    return begin(session);
  }
  Use use = begin(session);
  held.unlock();
  if (!session.server->readable()) return use;
  use.close();
  held.lock();
  return std::nullopt;
}

LockSessions::Use LockSessions::open(Lock& held, Instant deadline, bool waiting) {
  Use use(*this, *sessions_.emplace_back(std::make_unique<LockSession>()));
  use->waiting = waiting;
  held.unlock();
  const auto isFormer = [this](const ServerSession& each) { return !opener_.isCurrent(each); };
  std::unique_ptr<ServerSession> server;
  try {
    server = opener_.open(deadline);
  } catch (...) {
    held.lock();
    retireAll(isFormer);
    held.unlock();
    use.close();
    throw;
  }
  held.lock();
  use->server = std::move(server);
  retireAll(isFormer);
  held.unlock();
  return use;
}

void LockSessions::awaitReturn(Lock& held, Instant deadline) {
  if (now() >= deadline) throw StoreUnavailable(display() + ": the session for this stayed in use");
  opener_.clock().wait(held, returned_, deadline);
}

void LockSessions::notifyReturn(Lock& held) {
  std::stop_source polled = std::exchange(nextReturn_, std::stop_source(std::nostopstate));
  held.unlock();
  returned_.notify_all();
  polled.request_stop();
}

}  // namespace lockkeeper::mysql
