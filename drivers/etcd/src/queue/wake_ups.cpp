#include "queue/wake_ups.h"

#include <Poco/Exception.h>
#include <Poco/JSON/Array.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
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
  const Lock lock(all_.mutex_);
  all_.waiters_.emplace(rootOf(claim_), this);
}

WakeUps::Waiter::~Waiter() {
  const Lock lock(all_.mutex_);
  std::erase_if(all_.waiters_, [&](const auto& each) { return each.second == this; });
}

void WakeUps::Waiter::begin() {
  const Lock lock(all_.mutex_);
  obstacles_ = {};
  news_ = News::none;
}

bool WakeUps::Waiter::expect(const Obstacles& obstacles) {
  const Lock lock(all_.mutex_);
  obstacles_ = obstacles;
  return all_.live_;
}

void WakeUps::Waiter::stopped() {
  if (all_.store_.forkGuard.inherited()) return;  // the one who waits is in the parent
  const Lock lock(all_.mutex_);
  stoppedAt_ = all_.store_.clock().now();
  wakeUp_.notify_one();
  all_.interruptLeader();
}

Instant WakeUps::Waiter::stoppedAt() const {
  const Lock lock(all_.mutex_);
  // The callback, in another thread, may not have come so far yet.
  const bool seen = stoppedAt_ != Instant::max() || !stop_.stop_requested();
  return seen ? stoppedAt_ : all_.store_.clock().now();
}

WakeUps::News WakeUps::Waiter::wait(Instant until, Instant end) {
  Lock lock(all_.mutex_);
  Clock& clock = all_.store_.clock();
  while (news_ == News::none && !stop_.stop_requested() && clock.now() < until) {
    if (!all_.leading_) {
      all_.attend(lock, until, end);
      continue;
    }
    all_.sleeping_.push_back(this);
    clock.wait(lock, wakeUp_, until);
    std::erase(all_.sleeping_, this);
  }
  all_.passOn();
  return std::exchange(news_, News::none);
}

WakeUps::WakeUps(EtcdStore& store, WaitingLease& lease, HeldClaims& held)
    : store_(store),
      lease_(lease),
      held_(held),
      request_(watchOf(store.locksFrom(""))),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      backoff_(firstBackoff) {
  if (wake_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

WakeUps::~WakeUps() { ::close(wake_); }

void WakeUps::lookAll() {
  const Lock lock(mutex_);
  tellAll();
  interruptLeader();
}

void WakeUps::takeIn() {
  const Lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || leading_ || !connection_) return;
  if (!readOn()) drop();
  passOn();
}

// Waits once, until `until` at most, and deals with what has come. Lets go of the mutex meanwhile.
void WakeUps::attend(Lock& lock, Instant until, Instant end) {
  leading_ = true;
  if (connection_ && connection_->member() != store_.current()) drop();
  lock.unlock();
  bool broken = false;
  bool leaseKept = true;
  try {
    leaseKept = keepLease(end);
    if (!connection_ && store_.clock().now() >= nextDial_) dial(end);
    serve(until);
  } catch (const std::exception&) {
    broken = true;  // what is wrong with the server, its callers hear by their own requests
  }
  lock.lock();
  leading_ = false;
  if (!leaseKept) tellAll();
  const bool silent = connection_ && !live_ && store_.clock().now() >= answerBy_;
  if (!broken && connection_ && !readOn()) broken = true;
  if (silent && !live_) {
    connection_->avoidAddress();
    store_.suspect(connection_->member());
  }
  if (broken || (silent && !live_)) drop();
}

bool WakeUps::keepLease(Instant end) {
  return store_.clock().now() < lease_.due() || lease_.keep(std::min(store_.oneTimeout(), end));
}

void WakeUps::dial(Instant end) {
  const Instant now = store_.clock().now();
  nextDial_ = saturatingAdd(now, backoff_.next(*store_.environment().random));
  answerBy_ = saturatingAdd(now, store_.options().connectTimeout + store_.options().ioTimeout);
  connection_ = store_.stream("/v3/watch", request_, std::min(answerBy_, end));
  connection_->advance(store_.clock(), Instant::min());
  behindSince_.reset();
}

// Blocks until there is something to do.
void WakeUps::serve(Instant until) {
  const Instant now = store_.clock().now();
  std::array<pollfd, 2> polled{{{wake_, POLLIN, 0}, {-1, 0, 0}}};
  if (connection_) polled[1] = connection_->awaited();
  until = connection_ && connection_->hasMore() ? now : untilNeeded(until);
  if (::poll(polled.data(), polled.size(), pollTime(until, now)) > 0 && polled[0].revents != 0) {
    std::uint64_t count = 0;
    (void)!::read(wake_, &count, sizeof count);
  }
}

Instant WakeUps::untilNeeded(Instant until) const {
  until = std::min(until, lease_.due());
  if (!connection_) return std::min(until, nextDial_);
  return live_ ? until : std::min(until, answerBy_);
}

// Takes in what has come, as far as a caller may be kept. False when the stream is of no use any more.
bool WakeUps::readOn() noexcept {
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
    tellAll();  // what happened before was not told
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
    news_ = News::look;
    wakeUp_.notify_one();
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
  wakeUp_.notify_one();
}

void WakeUps::drop() {
  connection_.reset();
  if (std::exchange(live_, false)) tellAll();
}

void WakeUps::tellAll() {
  for (const auto& [root, waiter] : waiters_) {
    if (waiter->news_ == News::none) waiter->news_ = News::look;
    waiter->wakeUp_.notify_one();
  }
}

void WakeUps::interruptLeader() const {
  const std::uint64_t one = 1;
  (void)!::write(wake_, &one, sizeof one);
}

// One of those who sleep reads from now on, unless somebody does.
void WakeUps::passOn() {
  if (!leading_ && !sleeping_.empty()) sleeping_.front()->wakeUp_.notify_one();
}

}  // namespace lockkeeper::etcd
