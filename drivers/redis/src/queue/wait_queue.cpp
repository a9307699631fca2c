#include "queue/wait_queue.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "lockkeeper/driver/capabilities.h"
#include "scripts.h"
#include "store/companion_key.h"
#include "wire/protocol/redirect.h"
#include "wire/protocol/script.h"

namespace lockkeeper::redis {

namespace {

using std::chrono::milliseconds;

constexpr std::chrono::minutes pauseOfQueueing{1};

// A cluster's node may refuse what needs several keys while their slot goes to another node.
constexpr milliseconds onItsWayPause{100};

const Script& queueScript() {
  static const Script& script = *new Script(scripts::queue);
  return script;
}

}  // namespace

/// A lock and the two keys of its queue, in the name of one claim.
struct WaitQueue::Place {
  explicit Place(std::string_view lock) : Place({.key = lock, .token = {}, .owner = {}}, {}, {}) {}
  /// Without `fenceKept`, no fences are drawn.
  Place(const Claim& claim, std::string_view itsValue, std::optional<milliseconds> itsFenceKept)
      : key(claim.key),
        order(companionKey(claim.key, "queue")),
        waiters(companionKey(claim.key, "waiters")),
        counter(companionKey(claim.key, "fence")),
        fenceKept(itsFenceKept ? std::to_string(itsFenceKept->count()) : std::string()),
        value(itsValue),
        share(claim.share) {}

  std::string_view waitOperation() const { return share ? "waitShare" : "wait"; }
  std::string_view releaseOperation() const { return share ? "releaseShare" : "release"; }

  /// `further` are what the operation is given besides, three at most.
  void addTo(Request& request, Script::By by, std::string_view operation, std::string_view itsValue,
             std::initializer_list<std::string_view> further = {}) const {
    const std::array<std::string_view, 4> keys = {key, order, waiters, counter};
    std::array<std::string_view, 6> arguments = {operation, itsValue, fenceKept};
    std::ranges::copy(further, arguments.begin() + 3);
    queueScript().addTo(request, by, std::span(keys).first(fenceKept.empty() ? 3 : 4),
                        std::span(arguments).first(3 + further.size()));
  }

  const std::string_view key;
  const ComposedText order;
  const ComposedText waiters;
  const ComposedText counter;
  const std::string fenceKept;
  const std::string_view value;
  const std::optional<Share> share;
};

/// What one look at the queue has found.
struct WaitQueue::Look {
  bool possible = true;  // there can be a queue
  bool offered = false;
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

AcquireResult WaitQueue::wait(const Claim& claim, std::string_view value, Instant until,
                              const std::stop_token& stop,
                              const std::function<AcquireResult(const Offer&)>& accept, std::string& ticket) {
  if (!permitted() || stop.stop_requested()) return Busy{};
  const Place place(claim, value, fenceKept());
  Subscription::Waiter waiter(subscription_, hashSlot(claim.key));
  bool told = true;  // to look
  do {
    const Look found = look(place, waiter, ticket);
    if (!found.possible) {
      if (!ticket.empty()) tryToLeave(place);
      return Busy{};
    }
    Subscription::News news{.offered = found.offered};
    Offer offer;
    if (!found.offered) {
      // It was offered the key, or passed over because it could not be reached, and has not heard of it.
      if (!told && found.isNew) subscription_.suspect();
      ticket = found.ticket;
      news = waitForNews(waiter, std::min(found.next, until), stop);
      // From a server that is left, perhaps, since it is not the master any more.
      if (news.leased && !news.channelChanged) offer = {.after = found.sentAt, .fence = news.fence};
    }
    told = news.offered || news.channelChanged;
    if (!news.offered || stop.stop_requested()) continue;
    try {
      const AcquireResult result = accept(offer);
      if (std::holds_alternative<Granted>(result)) return result;
    } catch (const StoreUnavailable& error) {
      stillQueued(error);
    }
  } while (!stop.stop_requested() && store_.clock().now() < until);
  leave(place);
  return Busy{};
}

WaitQueue::Watch WaitQueue::watch(std::string_view key) {
  const Place place(key);
  return {place.order, place.waiters, subscription_.channelOfReports(hashSlot(key))};
}

Subscription::News WaitQueue::waitForNews(Subscription::Waiter& waiter, Instant until,
                                          const std::stop_token& stop) const {
  while (true) {
    const Subscription::News news = waiter.wait(until, stop);
    if (!news.lookIn || news.offered || news.channelChanged) return news;
    until = std::min(until, saturatingAdd(store_.clock().now(), *news.lookIn));
  }
}

WaitQueue::Look WaitQueue::look(const Place& place, Subscription::Waiter& waiter, std::string_view ticket) {
  Request request;
  const Subscription::Waiter::Address address = waiter.newAddress();
  const std::string number = std::to_string(address.number);
  try {
    store_.executeScripts(request, store_.oneTimeout(), [&](Request& call, Script::By by) {
      place.addTo(call, by, place.waitOperation(), place.value, {number, address.channel, ticket});
    });
    const Reply& reply = request.reply(0);
    if (isError(reply, "NOPERM")) noteRefusal();
    // Or the keys of the queue hold something else.
    if (isError(reply, "NOPERM") || isError(reply, "WRONGTYPE")) return {.possible = false};
    if (isOnItsWay(reply))
      return {.next = saturatingAdd(store_.clock().now(), onItsWayPause), .ticket = std::string(ticket)};
    if (isError(reply, "READONLY") || isError(reply, "MASTERDOWN")) subscription_.suspect();
    if (reply.kind == ReplyKind::error) store_.refuse(reply);
  } catch (const StoreUnavailable& error) {
    if (ticket.empty()) throw;
    stillQueued(error);
  }
  const auto& items = request.reply(0).items;
  if (place.share && items.size() == 2 && items[0].isInteger(2) && items[1].kind == ReplyKind::integer)
    throwLimitsDisagree(place.key, *place.share, static_cast<std::uint32_t>(items[1].integer));
  if (items.size() == 1 && items[0].isInteger(1)) return {.offered = true};
  const bool known = items.size() == 4 && items[0].isInteger(0) && items[1].kind == ReplyKind::integer &&
                     items[2].kind == ReplyKind::bulk;
  if (!known) store_.unexpected(request);
  const milliseconds wait(std::clamp<std::int64_t>(items[1].integer, 1, 60'000));
  return {.sentAt = request.sentAt(),
          .next = saturatingAdd(store_.clock().now(), wait),
          .ticket = items[2].text,
          .isNew = items[3].isInteger(1)};
}

void WaitQueue::leave(const Place& place) {
  try {
    release(place, store_.oneTimeout());
  } catch (const StoreUnavailable& error) {
    stillQueued(error);
  } catch (const OutcomeUnknown& error) {
    throw WithdrawalUnknown(error.what());
  }
}

// As far as that is permitted; what is left of it dies in the queue.
void WaitQueue::tryToLeave(const Place& place) {
  Request request;
  try {
    store_.executeScripts(request, store_.oneTimeout(), [&](Request& call, Script::By by) {
      place.addTo(call, by, place.releaseOperation(), place.value);
    });
  } catch (const Error&) {
  }
}

// Of a slot that is on another node now, the queue is there too, with this claim's place in it.
void WaitQueue::stillQueued(const StoreUnavailable& error) {
  const auto* const redirected = dynamic_cast<const Redirected*>(&error);
  if (redirected != nullptr && redirected->redirect().kind == Redirect::Kind::moved) throw *redirected;
  throw OutcomeUnknown(std::string(error.what()) + "; the claim may still be in the queue");
}

std::optional<milliseconds> WaitQueue::fenceKept() const {
  return store_.options().fence ? std::optional(store_.options().fenceKept) : std::nullopt;
}

bool WaitQueue::release(const Claim& claim, std::string_view value, Instant deadline) {
  return release(Place(claim, value, fenceKept()), deadline);
}

bool WaitQueue::release(const Place& place, Instant deadline) {
  const RequestPool::Loan request = store_.requests.take();
  if (change(place, *request, deadline, place.releaseOperation(), place.value)) {
    if (isOnItsWay(request->reply(0))) return releaseAlone(place, deadline);
    const bool released = store_.flagOf(*request);
    knownOn_ = request->connection();
    return released;
  }
  const bool released = releaseAlone(place, deadline);
  noteRefusal();
  return released;
}

bool WaitQueue::releaseAlone(const Place& place, Instant deadline) {
  knownOn_ = 0;
  Request request;
  const Script& script = place.share ? Script::releasePermits() : Script::release();
  store_.executeScripts(request, deadline, [&](Request& call, Script::By by) {
    script.addTo(call, by, std::array{place.key}, std::array{place.value});
  });
  return store_.flagOf(request);
}

bool WaitQueue::postRelease(const Claim& claim, std::string_view value,
                            std::shared_ptr<PostListener> listener) {
  const std::uint64_t connection = knownOn_;
  if (connection == 0) return false;
  const RequestPool::Loan request = store_.requests.take();
  const Place place(claim, value, fenceKept());
  place.addTo(*request, Script::By::digest, place.releaseOperation(), value);
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
  Request request;
  if (change(Place(key), request, deadline, "break", grantId)) return store_.flagOf(request);
  if (grantId.empty()) {
    request.add({"DEL", key});
    store_.execute(request, deadline);
  } else {
    store_.executeScripts(request, deadline, [&](Request& call, Script::By by) {
      Script::breakLock().addTo(call, by, std::array{key}, std::array{grantId});
    });
  }
  return withoutQueue(request);
}

bool WaitQueue::resize(std::string_view key, std::uint32_t limit, Instant deadline) {
  Request request;
  const std::string number = std::to_string(limit);
  store_.executeScripts(request, deadline, [&](Request& call, Script::By by) {
    Place(key).addTo(call, by, "resize", "", {number});
  });
  return store_.flagOf(request);
}

// False when that is not permitted with queues; nothing was done then, and the request can be used again.
bool WaitQueue::change(const Place& place, Request& request, Instant deadline, std::string_view operation,
                       std::string_view value) {
  if (!permitted() && !place.share) return false;
  store_.executeScripts(request, deadline,
                        [&](Request& call, Script::By by) { place.addTo(call, by, operation, value); });
  if (!isError(request.reply(0), "NOPERM")) return true;
  if (place.share) store_.refuse(request.reply(0), permitPermissions);
  request.clear();
  return false;
}

// A refusal was for the queue only if the same is permitted without.
bool WaitQueue::withoutQueue(const Request& request) {
  const bool done = store_.flagOf(request);
  noteRefusal();
  return done;
}

bool WaitQueue::permitted() const { return store_.clock().now() >= refusedUntil_.load(); }

void WaitQueue::noteRefusal() {
  if (!permitted()) return;  // nobody has asked
  refusedUntil_ = saturatingAdd(store_.clock().now(), pauseOfQueueing);
  if (refusalNoted_.exchange(true)) return;
  store_.environment().tell(
      {.kind = EventKind::noted,
       .store = store_.name(),
       .text = "queues are not permitted, so who waits for a lock polls, in no order; they "
               "need " +
               std::string(queuePermissions)});
}

}  // namespace lockkeeper::redis
