#include "queue/subscription.h"

#include <algorithm>
#include <array>
#include <climits>
#include <set>
#include <utility>

#include "lockkeeper/base/token.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/whole_number.h"
#include "store/companion_key.h"
#include "wire/mux/connection.h"
#include "wire/protocol/server_error.h"

namespace lockkeeper::redis {

namespace {

using std::chrono::milliseconds;

constexpr std::chrono::minutes pauseOfSubscribing{1};
constexpr std::chrono::seconds nextAskPause{1};

// A system call at each turn of a lock that is handed on would cost it a tenth of its speed.
constexpr std::chrono::microseconds pollNowPause{50};

// As scripts/queue/queue.lua has it.
constexpr std::string_view grantWord = "grant ";

// Of a cluster's slots. A key for which this process waits again soon finds its channel there.
constexpr std::size_t mostUnused = 64;
constexpr std::chrono::seconds unusedAfter{1};

constexpr std::uint64_t mostRandomNumber = std::uint64_t{1} << 62;

// That "MOVED <slot> <address>" names, or "ASK …".
std::optional<std::uint16_t> slotIn(const Reply& error) {
  if (!isError(error, "MOVED") && !isError(error, "ASK")) return std::nullopt;
  const std::size_t begin = error.text.find(' ') + 1;
  return wholeNumber<std::uint16_t>(
      std::string_view(error.text).substr(begin, error.text.find(' ', begin) - begin));
}

}  // namespace

Subscription::Waiter::Waiter(Subscription& subscription, std::uint16_t slot)
    : subscription_(subscription), slot_(slot) {
  Lock lock(subscription_.poll_);
  number_ = ++subscription_.lastNumber_;
  subscription_.waiters_.emplace(number_, this);
  // What came while nobody waited, such as the end of the connection, is taken in first.
  subscription_.pollNow(lock);
}

Subscription::Waiter::~Waiter() {
  const Lock lock(subscription_.poll_);
  subscription_.waiters_.erase(number_);
  // A dial that nobody polls would time out. One that is polled now is in use by that thread.
  if (subscription_.waiters_.empty() && !subscription_.poll_.polling()) subscription_.dial_.reset();
}

Subscription::Waiter::Address Subscription::Waiter::newAddress() {
  Subscription& all = subscription_;
  const Lock lock(all.poll_);
  auto known = all.waiters_.extract(number_);
  number_ = known.key() = ++all.lastNumber_;
  all.waiters_.insert(std::move(known));
  news_ = {};
  std::string channel = all.channelOf(slot_);
  heard_ = !channel.empty();
  return {number_, std::move(channel)};
}

Subscription::News Subscription::Waiter::wait(Instant until, const std::stop_token& stop) {
  Subscription& all = subscription_;
  const std::stop_callback onStop(stop, [&] {
    if (all.forkGuard_.inherited()) return;  // the one who waits is in the parent
    const Lock lock(all.poll_);
    all.wake(*this);
    all.poll_.interrupt();
  });
  Lock lock(all.poll_);
  all.poll_.wait(
      lock, sleeper_, until,
      [&] { return news_.granted || news_.lookIn || news_.channelChanged || stop.stop_requested(); },
      [&] { return all.pollOnce(lock, until); });
  const News news = std::exchange(news_, {});
  const bool tell = std::exchange(all.tellRefusal_, false);
  lock.unlock();
  if (tell) {
    all.environment_.tell(
        {.kind = EventKind::noted,
         .store = all.dialer_.store(),
         .text = "SUBSCRIBE or PUBLISH (on a cluster: SSUBSCRIBE or SPUBLISH) is not permitted on the "
                 "channels lockkeeper:*: who waits for a lock polls, four times a second"});
  }
  return news;
}

Subscription::Subscription(const RedisOptions& options, const Environment& environment,
                           const DialRules& rules)
    : environment_(environment),
      clock_(*environment_.clock),
      dialer_(options, silent(environment), rules),
      channel_("lockkeeper:" + Token::generate(*environment_.random).hex()),
      poll_(clock_),
      lastNumber_(environment_.random->upTo(mostRandomNumber)),
      backoff_(redialBackoff) {}

std::string Subscription::channelOfReports(std::uint16_t slot) {
  Lock lock(poll_);
  want(slot);
  pollNow(lock);
  return channelOf(slot);
}

// Where messages for the slot are heard; empty while they are not.
std::string Subscription::channelOf(std::uint16_t slot) {
  want(slot);
  const auto own = slots_.find(slotOf(slot));
  return live_ && own != slots_.end() && own->second.live ? own->second.name : std::string();
}

// Subscribes to the slot's channel, unless that is under way or has just been refused.
void Subscription::want(std::uint16_t keySlot) {
  if (!live_) return;
  const std::uint16_t slot = slotOf(keySlot);
  SlotChannel& own = slots_[slot];
  const Instant now = clock_.now();
  own.wantedAt = now;
  if (own.asked || own.live || now < own.nextAsk) return;
  leaveUnused(now);
  if (own.name.empty()) own.name = sharded_ ? channel_ + ":{" + tagInSlot(slot) + "}" : channel_;
  if (slots_.size() == 1) {
    // This only asks whether it is permitted: those who release locks publish. It must come first, since a
    // connection that is subscribed may not publish.
    probeDue_ = true;
    appendCommand(out_, {sharded_ ? "SPUBLISH" : "PUBLISH", own.name, "0"});
  }
  own.asked = true;
  ask({.slot = slot}, now);
}

void Subscription::ask(Question question, Instant now) {
  if (asked_.empty()) answerBy_ = saturatingAdd(now, dialer_.options().ioTimeout);
  const std::string_view command = question.leaves ? "SUNSUBSCRIBE" : sharded_ ? "SSUBSCRIBE" : "SUBSCRIBE";
  appendCommand(out_, {command, slots_[question.slot].name});
  asked_.push_back(question);
  poll_.interrupt();
}

// The oldest ones in which nobody waits.
void Subscription::leaveUnused(Instant now) {
  if (!mayLeave_ || slots_.size() <= mostUnused) return;
  std::set<std::uint16_t> used;
  for (const auto& [number, waiter] : waiters_) used.insert(slotOf(waiter->slot_));
  std::vector<std::pair<Instant, std::uint16_t>> unused;
  for (const auto& [slot, own] : slots_) {
    if (own.live && !used.contains(slot) && now - own.wantedAt > unusedAfter)
      unused.emplace_back(own.wantedAt, slot);
  }
  if (unused.size() <= mostUnused) return;
  std::ranges::sort(unused);
  for (std::size_t index = 0; index + mostUnused / 2 < unused.size(); ++index) {
    const std::uint16_t slot = unused[index].second;
    slots_[slot].live = false;
    ask({.slot = slot, .leaves = true}, now);
  }
}

bool Subscription::reportedSince(Instant since) noexcept {
  Lock lock(poll_, std::try_to_lock);
  if (!lock.owns()) return false;  // the next caller will hear of it
  pollNow(lock);
  return reportedAt_ >= since;
}

// Takes in what has come, unless another thread polls, or has just done so.
void Subscription::pollNow(Lock& lock) {
  const Instant now = clock_.now();
  if (poll_.polling() || now < nextPollNow_) return;
  nextPollNow_ = saturatingAdd(now, pollNowPause);
  SharedPoll::Waiter self;
  poll_.wait(
      lock, self, now, [] { return false; }, [&] { return pollOnce(lock, now); });
}

void Subscription::suspect() {
  const Lock lock(poll_);
  if (!live_) return;
  answerBy_ = clock_.now();  // so that who polls drops the connection
  disconnected();
  poll_.interrupt();
}

// Polls until `until` at most, and handles what has come. Returns when that was over. Does not throw.
Instant Subscription::pollOnce(Lock& lock, Instant until) {
  const Instant began = clock_.now();
  bool connected = false;
  bool broken = false;
  try {
    if (!stream_ && !dial_ && began >= nextDial_) dial_ = std::make_unique<Dial>(dialer_, began);
    std::array<pollfd, 2> polled{{{-1, 0, 0}, {-1, 0, 0}}};
    until = std::min(until, awaited(polled[1]));
    const bool fresh = dial_ && polled[1].fd < 0;
    lock.unlock();
    poll_.poll(polled, fresh ? began : until);
    const Instant now = clock_.now();
    const bool due = dial_ && dial_->actBy() <= now;
    if (fresh || due || polled[1].revents != 0) connected = use(now);
  } catch (const std::exception&) {
    broken = true;  // what is wrong with the server, its callers hear by the command connection
  }
  if (!lock.owns()) lock.lock();
  const Instant now = clock_.now();
  try {
    if (connected) greet();
    if (!broken && stream_) takeIn(now);
  } catch (const std::exception&) {
    broken = true;
  }
  if (broken || (stream_ && answersDue() && now >= answerBy_)) drop(now);
  return now;
}

// Until when nothing has to be done unless there is something.
Instant Subscription::awaited(pollfd& polled) const {
  if (dial_) {
    polled = dial_->awaited();
    return dial_->actBy();
  }
  if (!stream_) return nextDial_;
  polled = out_.empty() ? stream_->toReceive() : stream_->toSend();
  return answersDue() ? answerBy_ : Instant::max();
}

// Outside the mutex: system calls. True when the dial is done.
bool Subscription::use(Instant now) {
  if (dial_) return dial_->advance(now);
  receiveAll(*stream_, *reader_);
  return false;
}

void Subscription::greet() {
  stream_ = dial_->take();
  sharded_ = hasShardedChannels(dial_->facts());
  dial_.reset();
  reader_ = std::make_unique<ReplyReader>();
  refused_ = false;
  live_ = true;
  for (const auto& [number, waiter] : waiters_) want(waiter->slot_);
}

void Subscription::takeIn(Instant now) {
  if (!out_.empty()) {
    out_.erase(0, stream_->send(out_));
    if (!out_.empty()) return;
    // The question was perhaps asked long before anybody polled and sent it.
    if (live_ && answersDue()) answerBy_ = saturatingAdd(now, dialer_.options().ioTimeout);
  }
  Reply reply;
  while (reader_->next(reply)) accept(reply);
  if (!refused_) return;
  drop(now);
  nextDial_ = saturatingAdd(now, pauseOfSubscribing);
}

void Subscription::accept(const Reply& reply) {
  if (reply.kind == ReplyKind::error) return acceptError(reply);
  if (reply.items.empty()) {  // the number of those who heard our first message
    probeDue_ = false;
    return;
  }
  const std::string& kind = reply.items[0].text;
  if ((kind == "message" || kind == "smessage") && reply.items.size() == 3) {
    deliver(reply.items[2].text);
  } else if (reply.items.size() == 3) {
    acceptOfSlot(kind, reply.items[1].text);
  }
}

void Subscription::acceptError(const Reply& error) {
  // When a slot moves, the server ends the subscription with the words that answer SUNSUBSCRIBE. If we were
  // just leaving the channel, that was taken for the answer, and this is the answer.
  const auto slot = slotIn(error);
  if (slot && (asked_.empty() || asked_.front().slot != *slot)) return;
  const bool isAboutLeaving = !probeDue_ && !asked_.empty() && asked_.front().leaves;
  if (isAboutLeaving) return notLeft(isError(error, "NOPERM"));
  if (isError(error, "NOPERM")) {
    refused_ = true;
    tellRefusal_ = tellRefusal_ || !std::exchange(refusalNoted_, true);
    return;
  }
  if (std::exchange(probeDue_, false)) return;
  if (asked_.empty()) throw StoreUnavailable("the server refuses what it was not asked");
  // The slot is on another node, or on its way. Who waits for it looks, and then asks again.
  SlotChannel& own = slots_[asked_.front().slot];
  answered();
  own.asked = false;
  own.nextAsk = saturatingAdd(clock_.now(), nextAskPause);
}

// The server still has us in the slot's channel if it does not permit to leave, and else has not.
void Subscription::notLeft(bool isRefused) {
  const std::uint16_t slot = asked_.front().slot;
  answered();
  mayLeave_ = mayLeave_ && !isRefused;
  if (isRefused) {
    slots_[slot].live = true;
  } else if (!slots_[slot].asked) {
    slots_.erase(slot);
  }
}

// The oldest question. Each has the I/O timeout, from the answer before it on.
void Subscription::answered() {
  asked_.pop_front();
  if (live_) answerBy_ = saturatingAdd(clock_.now(), dialer_.options().ioTimeout);
}

void Subscription::acceptOfSlot(std::string_view kind, std::string_view channel) {
  const std::uint16_t slot = slotOf(hashSlot(channel));
  SlotChannel& own = slots_[slot];
  const bool isAnswer = !asked_.empty() && asked_.front().slot == slot;
  if ((kind == "subscribe" || kind == "ssubscribe") && isAnswer && !asked_.front().leaves) {
    answered();
    backoff_ = redialBackoff;
    own.live = true;
  } else if (kind == "sunsubscribe" && isAnswer && asked_.front().leaves) {
    answered();
    if (!own.asked) slots_.erase(slot);
    return;
  } else if (kind == "sunsubscribe") {
    own.live = false;  // the slot has gone to another node
  } else {
    throw StoreUnavailable("the server reports a channel without a subscription");
  }
  own.asked = false;
  for (const auto& [number, waiter] : waiters_) {
    if (slotOf(waiter->slot_) != slot || (!own.live && !waiter->heard_)) continue;
    waiter->news_.channelChanged = true;
    wake(*waiter);
  }
}

// "<number> grant <fence>": it has the key, with no fence if that is 0. "<number> <ms>": it should look then;
// "<number>": at once. "wanted": as reportedSince().
void Subscription::deliver(const std::string& message) {
  if (message == "wanted") {
    reportedAt_ = clock_.now();
    return;
  }
  const std::size_t space = message.find(' ');
  const auto number = wholeNumber<std::uint64_t>(std::string_view(message).substr(0, space));
  const auto waiter = waiters_.find(number.value_or(0));
  if (waiter == waiters_.end()) return;  // has left
  News& news = waiter->second->news_;
  const std::string_view rest =
      space == std::string::npos ? std::string_view() : std::string_view(message).substr(space + 1);
  if (rest.starts_with(grantWord)) {
    const auto fence = wholeNumber<Fence>(rest.substr(grantWord.size()));
    news.granted = fence.has_value();
    if (fence.value_or(0) > 0) news.fence = fence;
  } else if (const auto length = rest.empty() ? 0 : wholeNumber<std::uint64_t>(rest)) {
    news.lookIn = milliseconds(std::min<std::uint64_t>(*length, INT_MAX));
  }
  wake(*waiter->second);
}

void Subscription::drop(Instant now) {
  dial_.reset();
  stream_.reset();
  reader_.reset();
  out_.clear();
  slots_.clear();
  asked_.clear();
  probeDue_ = false;
  nextDial_ = saturatingAdd(now, backoff_.next(*environment_.random));
  disconnected();
}

// Nothing is heard any more.
void Subscription::disconnected() {
  live_ = false;
  for (const auto& [number, waiter] : waiters_) {
    if (!waiter->heard_) continue;
    waiter->news_.channelChanged = true;
    wake(*waiter);
  }
}

}  // namespace lockkeeper::redis
