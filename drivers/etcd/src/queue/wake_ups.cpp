#include "queue/wake_ups.h"

#include <Poco/Exception.h>
#include <Poco/JSON/Array.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockkeeper::etcd {

namespace {

using std::chrono::milliseconds;

constexpr Backoff firstBackoff(milliseconds{20}, milliseconds{500});

// That are read at a time, of 16 KB each.
constexpr int mostPieces = 16;

// A stream that is not read to its end for so long is dropped: the next one begins with the present.
constexpr milliseconds longestBehind{1000};

std::string rootOf(const std::string& claim) { return claim.substr(0, claim.rfind('/') + 1); }

std::string watchOf(const KeyRange& keys) {
  return R"({"create_request":{"key":")" + base64(keys.from) + R"(","range_end":")" + base64(keys.to) +
         R"(","filters":["NOPUT"]}})";
}

}  // namespace

WakeUps::Waiter::Waiter(WakeUps& all, std::string claim, const std::stop_token& stop)
    : all_(all), claim_(std::move(claim)), stop_(stop), onStop_(stop, [this] { stopped(); }) {
  const Lock lock(all_.poll_);
  all_.waiters_.emplace(rootOf(claim_), this);
}

WakeUps::Waiter::~Waiter() {
  const Lock lock(all_.poll_);
  std::erase_if(all_.waiters_, [&](const auto& each) { return each.second == this; });
}

void WakeUps::Waiter::watchAll() {
  const Lock lock(all_.poll_);
  obstacles_ = {};
  news_ = News::none;
}

bool WakeUps::Waiter::watch(const Obstacles& obstacles) {
  const Lock lock(all_.poll_);
  obstacles_ = obstacles;
  return all_.live_;
}

void WakeUps::Waiter::stopped() {
  if (all_.store_.forkGuard.inherited()) return;  // the one who waits is in the parent
  const Lock lock(all_.poll_);
  stoppedAt_ = all_.store_.clock().now();
  all_.poll_.wake(sleeper_);
  all_.poll_.interrupt();
}

Instant WakeUps::Waiter::stoppedAt() const {
  const Lock lock(all_.poll_);
  // The callback, in another thread, may not have come so far yet.
  const bool seen = stoppedAt_ != Instant::max() || !stop_.stop_requested();
  return seen ? stoppedAt_ : all_.store_.clock().now();
}

WakeUps::News WakeUps::Waiter::wait(Instant until, Instant end) {
  Lock lock(all_.poll_);
  const auto done = [&] {
    return news_ != News::none || stop_.stop_requested() || all_.store_.clock().now() >= until;
  };
  all_.poll_.wait(lock, sleeper_, until, done, [&] { return all_.pollOnce(lock, until, end); });
  return std::exchange(news_, News::none);
}

WakeUps::WakeUps(EtcdStore& store, WaitingLease& lease, HeldClaims& held)
    : store_(store),
      lease_(lease),
      held_(held),
      request_(watchOf(store.locksFrom(""))),
      poll_(store.clock()),
      backoff_(firstBackoff) {}

void WakeUps::wakeAll() {
  const Lock lock(poll_);
  changed();
  poll_.interrupt();
}

void WakeUps::readPending() {
  const Lock lock(poll_, std::try_to_lock);
  if (!lock.owns() || poll_.polling() || !connection_) return;
  if (!readStream()) drop();
}

// Polls until `until` at most, and handles what has come. Returns when that was over. Does not throw.
Instant WakeUps::pollOnce(Lock& lock, Instant until, Instant end) {
  const bool left = connection_ && connection_->member() != store_.current();
  if (left) drop();
  lock.unlock();
  bool broken = false;
  bool leaseKept = true;
  try {
    if (store_.clock().now() >= lease_.due()) leaseKept = lease_.keep(std::min(store_.oneTimeout(), end));
    if (leaseKept && !connection_ && store_.clock().now() >= nextDial_) dial(end);
    // Waiters hear of the end of their lease, or of their connection, before the next poll.
    poll(leaseKept && !left ? until : Instant::min());
  } catch (const std::exception&) {
    broken = true;  // what is wrong with the server, its callers hear by their own requests
  }
  lock.lock();
  if (!leaseKept) changed();
  const Instant now = store_.clock().now();
  const bool silent = connection_ && !live_ && now >= answerBy_;
  if (!broken && connection_ && !readStream()) broken = true;
  if (silent && !live_) {
    connection_->avoidAddress();
    store_.suspect(connection_->member());
  }
  if (broken || (silent && !live_)) drop();
  return now;
}

void WakeUps::dial(Instant end) {
  const Instant now = store_.clock().now();
  nextDial_ = saturatingAdd(now, backoff_.next(*store_.environment().random));
  answerBy_ = saturatingAdd(now, store_.options().connectTimeout + store_.options().ioTimeout);
  connection_ = store_.stream("/v3/watch", request_, std::min(answerBy_, end));
  connection_->advance(store_.clock(), Instant::min());
  behindSince_.reset();
}

void WakeUps::poll(Instant until) {
  std::array<pollfd, 2> polled{{{-1, 0, 0}, {-1, 0, 0}}};
  if (connection_) polled[1] = connection_->awaited();
  until = std::min(until, lease_.due());
  if (!connection_) {
    until = std::min(until, nextDial_);
  } else if (connection_->hasMore()) {
    until = Instant::min();
  } else if (!live_) {
    until = std::min(until, answerBy_);
  }
  poll_.poll(polled, until);
}

// Reads what has come, but not for so long that the caller is kept. False when the stream is of no use any
// more.
bool WakeUps::readStream() noexcept {
  try {
    for (int pieces = 0; pieces < mostPieces; ++pieces) {
      const bool ended = connection_->advance(store_.clock(), Instant::min());
      if (!readLines() || ended) return false;
      if (connection_->hasMore()) continue;
      behindSince_.reset();
      return true;
    }
    const Instant now = store_.clock().now();
    if (!behindSince_) behindSince_ = now;
    return now < saturatingAdd(*behindSince_, longestBehind);
  } catch (const std::exception&) {
    return false;
  }
}

bool WakeUps::readLines() noexcept {
  if (connection_->reply().status() != 0 && connection_->reply().status() != 200) return false;
  try {
    std::string line;
    while (connection_->reply().nextLine(line)) {
      if (!accept(line)) return false;
    }
    return true;
  } catch (const std::exception&) {  // not what etcd says
    return false;
  }
}

bool WakeUps::accept(const std::string& line) {
  const auto message = parsed(line);
  const auto result = message ? message->getObject("result") : nullptr;
  if (!result || result->optValue("canceled", false)) return false;
  if (result->optValue("created", false)) {
    live_ = true;
    backoff_ = firstBackoff;
    changed();  // what happened before was not told
  }
  const auto events = result->getArray("events");
  for (std::size_t i = 0; events && i < events->size(); ++i) {
    const auto event = events->getObject(static_cast<unsigned>(i));
    const auto entry = event ? event->getObject("kv") : nullptr;
    if (!entry) return false;
    if (event->optValue<std::string>("type", "PUT") != "DELETE") continue;
    deliver(bytes(*entry, "key"), number(*entry, "mod_revision"));
  }
  return true;
}

void WakeUps::deliver(const std::string& claim, std::int64_t revision) {
  held_.lost(claim, revision);
  const auto [from, to] = waiters_.equal_range(rootOf(claim));
  for (auto each = from; each != to; ++each) each->second->removed(claim, revision);
}

void WakeUps::Waiter::removed(const std::string& claim, std::int64_t revision) {
  if (news_ == News::enoughGone && claim != claim_) return;
  if (obstacles_.needed == 0 || claim == claim_) {
    news_ = News::changed;
    all_.poll_.wake(sleeper_);
    return;
  }
  const auto found = obstacles_.claims.find(claim);
  // One that was removed before it came to be there again is told of late.
  if (found == obstacles_.claims.end() || revision <= found->second.created) return;
  const std::uint64_t permits = found->second.permits;
  obstacles_.claims.erase(found);
  if (permits < obstacles_.needed) {
    obstacles_.needed -= permits;
    return;
  }
  obstacles_.needed = 0;
  news_ = News::enoughGone;
  all_.poll_.wake(sleeper_);
}

void WakeUps::drop() {
  connection_.reset();
  if (std::exchange(live_, false)) changed();
}

void WakeUps::changed() {
  for (const auto& [root, waiter] : waiters_) {
    if (waiter->news_ == News::none) waiter->news_ = News::changed;
    poll_.wake(waiter->sleeper_);
  }
}

}  // namespace lockkeeper::etcd
