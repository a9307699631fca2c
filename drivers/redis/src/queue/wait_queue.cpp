#include "queue/wait_queue.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "lockkeeper/driver/batches.h"
#include "lockkeeper/driver/driver.h"
#include "lockkeeper/driver/inspection.h"
#include "lockkeeper/permit/share.h"
#include "scripts.h"
#include "store/companion_key.h"
#include "wire/protocol/redirect.h"
#include "wire/protocol/script.h"

namespace lockkeeper::redis {

namespace {

using std::chrono::milliseconds;

// A cluster's node may refuse what needs several keys while their slot goes to another node.
constexpr milliseconds onItsWayPause{100};

}  // namespace

/// A lock with the keys of its queue and of its fences, in the name of one claim.
struct WaitQueue::Place {
  explicit Place(std::string_view lock) : Place({.key = lock, .token = {}, .owner = {}}, {}) {}
  Place(const Claim& claim, std::string_view itsValue)
      : key(claim.key),
        order(companionKey(claim.key, "queue")),
        waiters(companionKey(claim.key, "waiters")),
        counter(companionKey(claim.key, "fence")),
        value(itsValue),
        share(claim.share) {}

  std::string_view waitOperation() const { return share ? "waitShare" : "wait"; }
  std::string_view releaseOperation() const { return share ? "releaseShare" : "release"; }

  /// `further` are what the operation is given besides, five at most.
  void addTo(Request& request, Script::By by, std::string_view operation, std::string_view itsValue,
             std::initializer_list<std::string_view> further = {}) const {
    const std::array<std::string_view, 4> keys = {key, order, waiters, counter};
    std::array<std::string_view, 7> arguments = {operation, itsValue};
    std::ranges::copy(further, arguments.begin() + 2);
    Script::of<scripts::queue>().addTo(request, by, keys, std::span(arguments).first(2 + further.size()));
  }

  void addRelease(Request& request, Script::By by) const { addTo(request, by, releaseOperation(), value); }
  void addReleaseOfTheKeyAlone(Request& request, Script::By by) const {
    Script::of<scripts::queue>().addTo(request, by, std::array{key}, std::array{releaseOperation(), value});
  }

  const std::string_view key;
  const ComposedText order;
  const ComposedText waiters;
  const ComposedText counter;
  const std::string_view value;
  const std::optional<Share> share;
};

/// What one look at the queue has found.
struct WaitQueue::Look {
  bool possible = true;  // no other data is in the place of the queue
  std::optional<Granted> granted{};
  Instant sentAt{};
  Instant next{};        // when to look again
  std::string ticket{};  // the place in the queue
  bool isNew = false;    // it was not there before
};

/// A release that was posted.
class WaitQueue::PostedRelease final : public Posted {
 public:
  PostedRelease(WaitQueue& queue, std::shared_ptr<PostListener> listener)
      : queue_(queue), listener_(std::move(listener)) {}

  void ended() noexcept override {
    const bool answered = complete && (reply.isInteger(0) || reply.isInteger(1));
    // The next release is waited for, and finds out what this server takes.
    if (!answered) queue_.knownOn_ = 0;
    if (listener_ == nullptr) return;
    if (answered) {
      listener_->answered(reply.integer == 1 ? ReleaseOutcome::released : ReleaseOutcome::notOwner);
      return;
    }
    try {
      const ServerFault fault = queue_.faultOf(*this);
      listener_->failed(fault.code, fault.text);
    } catch (...) {
      listener_->failed(ErrorCode::outcomeUnknown, {});  // no memory for the words
    }
  }

 private:
  WaitQueue& queue_;
  const std::shared_ptr<PostListener> listener_;
};

WaitQueue::WaitQueue(RedisStore& store)
    : store_(store), subscription_(store.options(), store.environment(), store.dialRules()) {}

AcquireResult WaitQueue::wait(const AcquireRequest& request, std::string_view value, Instant until,
                              const std::stop_token& stop, std::string& ticket, Request& wire) {
  // A claim that is sent again may be in the queue, or have the key: the look finds out.
  if (ticket.empty() && !request.resend && stop.stop_requested()) return Busy{};
  const Place place(request.claim, value);
  Subscription::Waiter waiter(subscription_, hashSlot(request.claim.key));
  bool told = true;  // to look
  Instant deadline = std::min(store_.oneTimeout(), request.deadline);
  while (true) {
    const Look last = look(place, waiter, request, ticket, deadline, wire);
    if (!last.possible) {
      if (!ticket.empty()) leave(place, deadline);
      return Busy{};
    }
    if (last.granted) return *last.granted;
    const bool isOver = stop.stop_requested() || store_.clock().now() >= until;
    // It was granted the key, or passed over because it could not be reached, and has not heard of it.
    if (!told && last.isNew) subscription_.suspect();
    ticket = last.ticket;
    const Subscription::News news = waitForNews(waiter, std::min(last.next, until), stop);
    // If the wait ended during the look, the look and the leave have one I/O timeout together.
    if (!isOver) deadline = store_.oneTimeout();
    if (stop.stop_requested()) break;
    if (const auto granted = grantIn(news, last, request)) return *granted;
    told = news.granted || news.channelChanged;
    if (!news.granted && store_.clock().now() >= until) break;
  }
  leave(place, deadline);
  return Busy{};
}

// The lease has begun after the last look. Empty when there is none, or one more look has to renew it: it is
// old, its replicas are to be counted, or the message may be from a server that is not the master any more.
std::optional<Granted> WaitQueue::grantIn(const Subscription::News& news, const Look& last,
                                          const AcquireRequest& request) const {
  const RedisOptions& options = store_.options();
  if (!news.granted || news.channelChanged || options.minReplicas > 0) return {};
  if (options.fence != news.fence.has_value()) return {};
  if (store_.clock().now() - last.sentAt > request.ttl / 4) return {};
  return Granted{last.sentAt, request.ttl, news.fence};
}

WaitQueue::Watch WaitQueue::watch(std::string_view key) {
  const Place place(key);
  return {place.order, place.waiters, subscription_.channelOfReports(hashSlot(key))};
}

Subscription::News WaitQueue::waitForNews(Subscription::Waiter& waiter, Instant until,
                                          const std::stop_token& stop) const {
  while (true) {
    const Subscription::News news = waiter.wait(until, stop);
    if (!news.lookIn || news.granted || news.channelChanged) return news;
    until = std::min(until, saturatingAdd(store_.clock().now(), *news.lookIn));
  }
}

WaitQueue::Look WaitQueue::look(const Place& place, Subscription::Waiter& waiter,
                                const AcquireRequest& request, std::string_view ticket, Instant deadline,
                                Request& wire) {
  const Subscription::Waiter::Address address = waiter.newAddress();
  const std::string number = std::to_string(address.number);
  const std::string ttl = std::to_string(request.ttl.count());
  const RedisOptions& options = store_.options();
  const std::string kept = options.fence ? std::to_string(options.fenceKept.count()) : "0";
  // All tickets are later ones than 0.
  const std::string_view asked = request.ahead && ticket.empty() ? "0" : ticket;
  wire.clear();
  try {
    store_.executeScripts(wire, deadline, [&](Request& call, Script::By by) {
      place.addTo(call, by, place.waitOperation(), place.value, {number, address.channel, asked, ttl, kept});
    });
    const Reply& reply = wire.reply(0);
    if (isError(reply, "WRONGTYPE")) return {.possible = false};
    if (isOnItsWay(reply))
      return {.next = saturatingAdd(store_.clock().now(), onItsWayPause), .ticket = std::string(ticket)};
    if (isError(reply, "READONLY") || isError(reply, "MASTERDOWN")) subscription_.suspect();
    if (reply.kind == ReplyKind::error) store_.refuse(reply);
  } catch (const StoreUnavailable& error) {
    if (ticket.empty()) throw;
    stillQueued(error);
  } catch (const ConfigError&) {
    if (!ticket.empty()) leave(place, deadline);
    throw;
  }
  return lookIn(place, request, wire);
}

// What a reply says that is no error.
WaitQueue::Look WaitQueue::lookIn(const Place& place, const AcquireRequest& request, const Request& wire) {
  const auto& items = wire.reply(0).items;
  if (items.size() == 2 && items[1].kind == ReplyKind::integer) {
    const std::int64_t number = items[1].integer;
    if (place.share && items[0].isInteger(2))
      throwLimitsDisagree(place.key, *place.share, static_cast<std::uint32_t>(number));
    const bool withFence = store_.options().fence;
    if (!items[0].isInteger(1) || withFence != (number > 0)) store_.unexpected(wire);
    const auto fence = withFence ? std::optional(static_cast<Fence>(number)) : std::nullopt;
    return {.granted = Granted{wire.sentAt(), request.ttl, fence}};
  }
  const bool known = items.size() == 4 && items[0].isInteger(0) && items[1].kind == ReplyKind::integer &&
                     items[2].kind == ReplyKind::bulk;
  if (!known) store_.unexpected(wire);
  const milliseconds wait(std::clamp<std::int64_t>(items[1].integer, 1, 60'000));
  return {.sentAt = wire.sentAt(),
          .next = saturatingAdd(store_.clock().now(), wait),
          .ticket = items[2].text,
          .isNew = items[3].isInteger(1)};
}

void WaitQueue::leave(const Place& place, Instant deadline) {
  try {
    const RequestPool::Loan request = store_.requests.take();
    store_.executeScripts(*request, deadline,
                          [&](Request& call, Script::By by) { place.addRelease(call, by); });
    if (isOnItsWay(request->reply(0))) {
      throw WithdrawalUnknown(
          "the key's slot is on its way to another node; the claim may still be in the queue");
    }
    store_.flagOf(*request);
  } catch (const StoreUnavailable& error) {
    stillQueued(error);
  } catch (const OutcomeUnknown& error) {
    throw WithdrawalUnknown(error.what());
  } catch (const ConfigError& error) {
    throw WithdrawalUnknown(std::string(error.what()) + "; the claim may still be in the queue");
  }
}

// Of a slot that is on another node now, the queue is there too, with this claim's place in it.
void WaitQueue::stillQueued(const StoreUnavailable& error) {
  const auto* const redirected = dynamic_cast<const Redirected*>(&error);
  if (redirected != nullptr && redirected->redirect().kind == Redirect::Kind::moved) throw *redirected;
  throw OutcomeUnknown(std::string(error.what()) + "; the claim may still be in the queue");
}

bool WaitQueue::release(const Claim& claim, std::string_view value, Instant deadline) {
  const Place place(claim, value);
  const RequestPool::Loan request = store_.requests.take();
  store_.executeScripts(*request, deadline,
                        [&](Request& call, Script::By by) { place.addRelease(call, by); });
  if (isOnItsWay(request->reply(0))) {
    request->clear();
    store_.executeScripts(*request, deadline,
                          [&](Request& call, Script::By by) { place.addReleaseOfTheKeyAlone(call, by); });
    if (store_.flagOf(*request)) return true;
    throw OutcomeUnknown(
        store_.name() +
        ": the key's slot is on its way to another node; the claim may still be in the queue");
  }
  const bool released = store_.flagOf(*request);
  knownOn_ = request->connection();
  return released;
}

bool WaitQueue::postRelease(const Claim& claim, std::string_view value,
                            std::shared_ptr<PostListener> listener) {
  const std::uint64_t connection = knownOn_;
  if (connection == 0) return false;
  const RequestPool::Loan request = store_.requests.take();
  const Place place(claim, value);
  place.addRelease(*request, Script::By::digest);
  return store_.post(*request, std::make_unique<PostedRelease>(*this, std::move(listener)), connection);
}

ServerFault WaitQueue::faultOf(const PostedRelease& posted) {
  if (!posted.complete) return {posted.code, posted.why};
  if (posted.reply.kind != ReplyKind::error) {
    return {ErrorCode::protocol, store_.leaveForForm(posted.connection)};
  }
  if (isError(posted.reply, "NOSCRIPT")) {
    return {ErrorCode::storeUnavailable, store_.name() + " has not run the command: it has lost the script"};
  }
  return redis::faultOf(store_.name(), posted.reply);
}

bool WaitQueue::breakLock(std::string_view key, std::string_view grantId, Instant deadline) {
  return change(Place(key), deadline, "break", grantId);
}

bool WaitQueue::resize(std::string_view key, std::uint32_t limit, Instant deadline) {
  return change(Place(key), deadline, "resize", "", std::to_string(limit));
}

bool WaitQueue::change(const Place& place, Instant deadline, std::string_view operation,
                       std::string_view value, std::string_view further) {
  Request request;
  store_.executeScripts(request, deadline, [&](Request& call, Script::By by) {
    place.addTo(call, by, operation, value, {further});
  });
  return store_.flagOf(request);
}

}  // namespace lockkeeper::redis
