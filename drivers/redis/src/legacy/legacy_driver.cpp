#include "lockkeeper/redis/legacy_driver.h"

#include <array>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "legacy/legacy_call.h"
#include "lockkeeper/error.h"
#include "store/redis_store.h"

namespace lockkeeper::redis {

namespace {

using std::chrono::milliseconds;
using Kind = LegacyValue::Kind;

constexpr milliseconds gone{0};
// What is remembered to have been told; then it is told again.
constexpr std::size_t mostNoted = 1000;

LegacyClass classOf(const LegacyReply& found, milliseconds skewAllowance) {
  if (found.value.kind == Kind::foreign) return LegacyClass::foreign;
  if (found.expired(skewAllowance)) return found.ttl ? LegacyClass::expired : LegacyClass::phantom;
  return found.value.kind == Kind::digits ? LegacyClass::held : LegacyClass::ours;
}

// Of a lock, by the time that it names.
std::optional<milliseconds> timeLeft(const LegacyReply& found) {
  if (found.value.kind == Kind::foreign) return found.ttl;
  return found.value.ends - found.now;
}

// What a lease that we cannot renew or release has become. Another token is somebody who was granted the key;
// after all else, a legacy client may have the key or not.
bool isSomebodyElses(const LegacyReply& found) { return found.value.kind == Kind::withToken; }

}  // namespace

const char* toString(LegacyClass kind) noexcept {
  switch (kind) {
    case LegacyClass::held:
      return "held";
    case LegacyClass::expired:
      return "expired";
    case LegacyClass::phantom:
      return "phantom without TTL";
    case LegacyClass::foreign:
      return "foreign value";
    case LegacyClass::ours:
      return "our value";
  }
  return "unknown";
}

/// The connection and what the driver's operations share.
class LegacyRedisDriver::Impl : public RedisStore {
 public:
  using Visit = std::function<bool(std::string_view key, const LegacyReply& found)>;

  Impl(LegacyOptions legacy, const Environment& environment)
      : RedisStore(legacy.redis, environment), legacy_(std::move(legacy)) {
    legacy_.check();
  }

  const LegacyOptions& legacy() const { return legacy_; }

  LegacyReply call(Request& request, const LegacyCall& words, std::string_view operation, Instant deadline,
                   std::string_view expired = {});
  LegacyReply answerIn(const Request& request, std::size_t index = 0);
  RenewOutcome renewed(const Request& request, std::size_t index);
  std::optional<Holder> holderIn(const LegacyReply& found) const;
  void noteForeign(std::string_view key, const LegacyReply& found);
  /// At all keys that begin with `prefix`, and are of this type; of any if it is empty.
  void look(std::string_view prefix, std::string_view type, Instant deadline, const Visit& visit);
  /// At these keys, which have the prefix of the scheme. False when `visit` has ended it.
  bool lookAt(std::span<const std::string_view> keys, const Visit& visit, Instant deadline);

 private:
  const LegacyOptions legacy_;
  std::mutex mutex_;
  std::set<std::string, std::less<>> noted_;
};

LegacyRedisDriver::LegacyRedisDriver(LegacyOptions options, Environment environment)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(environment))) {}

LegacyRedisDriver::~LegacyRedisDriver() {
  // Closing an inherited connection properly would close the parent's: leaking it is right.
  if (impl_->forkGuard.inherited()) static_cast<void>(impl_.release());
}

AcquireResult LegacyRedisDriver::acquire(const AcquireRequest& request) {
  impl_->forkGuard.check();
  const milliseconds allowance = impl_->legacy().skewAllowance;
  const LegacyCall call(impl_->legacy(), request.claim, request.ttl);
  Request wire;
  LegacyReply found = impl_->call(wire, call, "acquire", request.deadline);
  if (found.expired(allowance)) {
    // The script takes over exactly the value that was judged here, or nothing.
    wire.clear();
    found = impl_->call(wire, call, "acquire", request.deadline, found.text);
  }
  if (found.done) return Granted{wire.sentAt(), request.ttl, std::nullopt};
  impl_->noteForeign(request.claim.key, found);
  const auto remaining = found.remaining(allowance);
  return Busy{remaining ? std::optional(std::max(*remaining, gone)) : std::nullopt};
}

void LegacyRedisDriver::renew(std::span<Renewal> renewals, Instant deadline) {
  impl_->forkGuard.check();
  std::vector<LegacyCall> calls;
  calls.reserve(renewals.size());
  for (const Renewal& each : renewals) calls.emplace_back(impl_->legacy(), each.claim, each.ttl);
  renewAll(renewals, [&] {
    Request wire;
    impl_->executeScripts(wire, deadline, [&](Request& request, Script::By by) {
      for (const LegacyCall& call : calls) call.addTo(request, by, "renew");
    });
    for (std::size_t index = 0; index < renewals.size(); ++index) {
      renewals[index].outcome = impl_->renewed(wire, index);
      const Reply& reply = wire.reply(index);
      if (reply.kind == ReplyKind::error) renewals[index].cause = impl_->faultIn(reply);
      renewals[index].leasedFrom = wire.sentAt();
      renewals[index].leasedFor = renewals[index].ttl;
    }
  });
}

ReleaseOutcome LegacyRedisDriver::release(const Claim& claim, Instant deadline) {
  impl_->forkGuard.check();
  Request wire;
  const LegacyReply found = impl_->call(wire, LegacyCall(impl_->legacy(), claim), "release", deadline);
  if (found.done) return ReleaseOutcome::released;
  return isSomebodyElses(found) ? ReleaseOutcome::notOwner : ReleaseOutcome::ownerUnknown;
}

std::optional<Holder> LegacyRedisDriver::holder(std::string_view key, Instant deadline) {
  impl_->forkGuard.check();
  Request wire;
  const LegacyReply found = impl_->call(wire, LegacyCall(impl_->legacy(), key), "look", deadline);
  impl_->noteForeign(key, found);
  return impl_->holderIn(found);
}

std::string LegacyRedisDriver::name() const { return impl_->name(); }

Promises LegacyRedisDriver::promises() const {
  impl_->forkGuard.check();
  return {.fence = FencePromise::none, .durability = impl_->durability()};
}

void LegacyRedisDriver::list(std::string_view prefix,
                             const std::function<bool(std::string_view key, const Holder& holder)>& visit,
                             Instant deadline) {
  impl_->forkGuard.check();
  impl_->look(prefix, "string", deadline, [&](std::string_view key, const LegacyReply& found) {
    const auto holder = impl_->holderIn(found);
    return !holder || found.value.kind == Kind::foreign || visit(key, *holder);
  });
}

std::string LegacyRedisDriver::listBusy(
    std::string_view place, const std::function<bool(std::string_view key)>& wanted,
    const std::function<bool(std::string_view key, const Holder& holder)>& visit, Instant deadline) {
  impl_->forkGuard.check();
  const std::string& prefix = impl_->legacy().keyPrefix;
  RedisStore::KeyPage page = impl_->scanPage(prefix, "", place, deadline);
  std::erase_if(page.keys, [&](std::string_view key) { return !wanted(key.substr(prefix.size())); });
  const std::vector<std::string_view> keys(page.keys.begin(), page.keys.end());
  const auto visitHolder = [&](std::string_view key, const LegacyReply& found) {
    const auto holder = impl_->holderIn(found);
    return !holder || visit(key, *holder);
  };
  if (!keys.empty()) impl_->lookAt(keys, visitHolder, deadline);
  return page.next;
}

bool LegacyRedisDriver::breakLock(std::string_view key, Instant deadline, const Holder* shown) {
  impl_->forkGuard.check();
  if (shown != nullptr) {
    Request wire;
    return impl_->call(wire, LegacyCall(impl_->legacy(), key), "break", deadline, shown->grantId).done;
  }
  const std::string full = impl_->legacy().keyPrefix + std::string(key);
  Request wire;
  wire.add({"DEL", full});
  impl_->execute(wire, deadline);
  return impl_->flagOf(wire);
}

void LegacyRedisDriver::audit(std::string_view prefix, const std::function<bool(const LegacyKey& key)>& visit,
                              Instant deadline) {
  impl_->forkGuard.check();
  const milliseconds allowance = impl_->legacy().skewAllowance;
  impl_->look(prefix, "", deadline, [&](std::string_view key, const LegacyReply& found) {
    if (found.value.kind == Kind::free) return true;
    return visit({.key = key,
                  .kind = classOf(found, allowance),
                  .owner = found.value.owner,
                  .what = found.value.what,
                  .remaining = timeLeft(found)});
  });
}

LegacyReply LegacyRedisDriver::Impl::call(Request& request, const LegacyCall& words,
                                          std::string_view operation, Instant deadline,
                                          std::string_view expired) {
  executeScripts(request, deadline,
                 [&](Request& wire, Script::By by) { words.addTo(wire, by, operation, expired); });
  return answerIn(request);
}

LegacyReply LegacyRedisDriver::Impl::answerIn(const Request& request, std::size_t index) {
  const Reply& reply = request.reply(index);
  if (reply.kind == ReplyKind::error) refuse(reply, lockPermissions);
  auto answer = parseLegacyReply(reply);
  if (!answer) unexpected(request);
  return std::move(*answer);
}

RenewOutcome LegacyRedisDriver::Impl::renewed(const Request& request, std::size_t index) {
  if (request.reply(index).kind == ReplyKind::error) return failedRenewal(request.reply(index));
  const LegacyReply found = answerIn(request, index);
  if (found.done) return RenewOutcome::renewed;
  return isSomebodyElses(found) ? RenewOutcome::notOwner : RenewOutcome::ownerUnknown;
}

std::optional<Holder> LegacyRedisDriver::Impl::holderIn(const LegacyReply& found) const {
  if (found.value.kind == Kind::free || found.expired(legacy_.skewAllowance)) return std::nullopt;
  const auto remaining = found.remaining(legacy_.skewAllowance);
  return Holder{.owner = found.value.owner,
                .remaining = remaining,
                .fence = std::nullopt,
                .grantId = sha1(legacyGrant(found.text)),
                .endless = !remaining};
}

// Once for each key, since a caller that waits for it asks again and again.
void LegacyRedisDriver::Impl::noteForeign(std::string_view key, const LegacyReply& found) {
  if (found.value.kind != Kind::foreign) return;
  {
    const std::lock_guard guard(mutex_);
    if (noted_.size() >= mostNoted) noted_.clear();
    if (!noted_.emplace(key).second) return;
  }
  const std::string text = "the key " + quoted(legacy_.keyPrefix + std::string(key)) + " holds " +
                           found.value.what + ": it is no lock, and is left alone";
  environment().tell({.kind = EventKind::noted, .store = name(), .text = text});
}

void LegacyRedisDriver::Impl::look(std::string_view prefix, std::string_view type, Instant deadline,
                                   const Visit& visit) {
  scan(legacy_.keyPrefix + std::string(prefix), type, deadline,
       [&](std::span<const std::string_view> keys) { return lookAt(keys, visit, deadline); });
}

bool LegacyRedisDriver::Impl::lookAt(std::span<const std::string_view> keys, const Visit& visit,
                                     Instant deadline) {
  const std::size_t hidden = legacy_.keyPrefix.size();
  std::vector<LegacyCall> calls;
  calls.reserve(keys.size());
  for (const std::string_view key : keys) calls.emplace_back(legacy_, key.substr(hidden));
  Request wire;
  executeScripts(wire, deadline, [&](Request& request, Script::By by) {
    for (const LegacyCall& call : calls) call.addTo(request, by, "look");
  });
  for (std::size_t index = 0; index < keys.size(); ++index) {
    if (!visit(keys[index].substr(hidden), answerIn(wire, index))) return false;
  }
  return true;
}

}  // namespace lockkeeper::redis
