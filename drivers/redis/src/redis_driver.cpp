#include "lockkeeper/redis/redis_driver.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_set>
#include <utility>
#include <vector>

#include "channel.h"
#include "companion_key.h"
#include "connector.h"
#include "fork_guard.h"
#include "lock_value.h"
#include "lockkeeper/key.h"
#include "script.h"
#include "server_error.h"

namespace lockkeeper::redis {

namespace {

using std::chrono::milliseconds;

// Longer than anyone may hold a lock, so that a counter outlives the last holder that could show its fence.
constexpr milliseconds fenceKept{std::chrono::days{7}};
constexpr std::string_view keysPerScan = "500";

std::string decimal(milliseconds length) { return std::to_string(length.count()); }

// `prefix` as a glob pattern that matches exactly what starts with it.
std::string globOf(std::string_view prefix) {
  std::string glob;
  for (const char byte : prefix) {
    if (std::string_view("*?[]^\\-").find(byte) != std::string_view::npos) glob.push_back('\\');
    glob.push_back(byte);
  }
  return glob + "*";
}

std::optional<Fence> parseFence(const std::string& text) {
  Fence fence = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), fence);
  if (fault != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return fence;
}

}  // namespace

/// The connection and what the driver's operations share.
class RedisDriver::Impl {
 public:
  Impl(RedisOptions options, Environment environment)
      : connector(std::move(options), std::move(environment)), channel(connector) {}

  const RedisOptions& options() const { return connector.options(); }
  Clock& clock() { return *connector.environment().clock; }

  AcquireResult setResult(const Request& request);
  AcquireResult scriptResult(const Request& request);
  void addReplicaWait(Request& request) const;
  std::int64_t replicasOf(const Request& request);
  void addHolder(Request& request, Script::By by, std::string_view key) const;
  std::optional<Holder> holderIn(const Reply& reply, bool oursOnly);
  bool flagOf(const Reply& reply);
  RenewOutcome renewed(const Reply& reply);
  [[noreturn]] void refuse(const Reply& reply);
  [[noreturn]] void unexpected();

  const ForkGuard forkGuard;
  Connector connector;
  Channel channel;
};

RedisDriver::RedisDriver(RedisOptions options, Environment environment)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(environment))) {}

RedisDriver::~RedisDriver() {
  // Closing an inherited connection properly would close the parent's: leaking it is right.
  if (impl_->forkGuard.inherited()) static_cast<void>(impl_.release());
}

AcquireResult RedisDriver::acquire(const AcquireRequest& request) {
  impl_->forkGuard.check();
  const std::string_view key = request.claim.key;
  const std::string value = lockValue(request.claim);
  const std::string ttl = decimal(request.ttl);
  const bool bare = !impl_->options().fence && !request.resend;
  Request wire;
  if (bare) {
    wire.add({"SET", key, value, "NX", "PX", ttl});
    impl_->addReplicaWait(wire);
    impl_->channel.execute(wire, request.deadline);
  } else {
    const std::string counter = companionKey(key, "fence");
    const std::string kept = decimal(fenceKept);
    const std::array<std::string_view, 2> keys = {key, counter};
    const std::array<std::string_view, 3> arguments = {value, ttl, kept};
    const std::size_t keyCount = impl_->options().fence ? 2 : 1;
    executeScripts(impl_->channel, wire, request.deadline, [&](Request& call, Script::By by) {
      Script::acquire().addTo(call, by, std::span(keys).first(keyCount), arguments);
      impl_->addReplicaWait(call);
    });
  }
  const AcquireResult result = bare ? impl_->setResult(wire) : impl_->scriptResult(wire);
  const std::uint32_t least = impl_->options().minReplicas;
  if (least == 0 || std::holds_alternative<Busy>(result)) return result;
  const std::int64_t replicas = impl_->replicasOf(wire);
  if (replicas >= least) return result;

  const std::string few = impl_->connector.store() + ": only " + std::to_string(replicas) + " of " +
                          std::to_string(least) + " replicas acknowledged the grant";
  try {
    release(request.claim, saturatingAdd(impl_->clock().now(), impl_->options().ioTimeout));
  } catch (const Error&) {
    throw OutcomeUnknown(few + "; giving it back failed");
  }
  throw StoreUnavailable(few + "; it was given back");
}

void RedisDriver::renew(std::span<Renewal> renewals, Instant deadline) {
  impl_->forkGuard.check();
  std::vector<std::string> values;
  values.reserve(renewals.size());
  for (const Renewal& each : renewals) values.push_back(lockValue(each.claim));
  const auto all = [&](RenewOutcome outcome) {
    for (Renewal& each : renewals) each.outcome = outcome;
  };
  try {
    Request wire;
    executeScripts(impl_->channel, wire, deadline, [&](Request& call, Script::By by) {
      for (std::size_t index = 0; index < renewals.size(); ++index) {
        const std::string ttl = decimal(renewals[index].ttl);
        const std::array<std::string_view, 1> keys = {renewals[index].claim.key};
        const std::array<std::string_view, 2> arguments = {values[index], ttl};
        Script::renew().addTo(call, by, keys, arguments);
      }
      impl_->addReplicaWait(call);
    });
    const std::uint32_t least = impl_->options().minReplicas;
    const bool replicated = least == 0 || impl_->replicasOf(wire) >= least;
    for (std::size_t index = 0; index < renewals.size(); ++index) {
      Renewal& each = renewals[index];
      each.outcome = impl_->renewed(wire.reply(index));
      if (each.outcome == RenewOutcome::renewed && !replicated) each.outcome = RenewOutcome::unavailable;
      each.leasedFrom = wire.sentAt();
    }
  } catch (const StoreUnavailable&) {
    all(RenewOutcome::unavailable);
  } catch (const ConfigError&) {
    all(RenewOutcome::unavailable);
  } catch (const Error&) {
    all(RenewOutcome::unknown);
  }
}

ReleaseOutcome RedisDriver::release(const Claim& claim, Instant deadline) {
  impl_->forkGuard.check();
  const std::string value = lockValue(claim);
  const std::array<std::string_view, 1> keys = {claim.key};
  const std::array<std::string_view, 1> arguments = {value};
  Request wire;
  executeScripts(impl_->channel, wire, deadline,
                 [&](Request& call, Script::By by) { Script::release().addTo(call, by, keys, arguments); });
  return impl_->flagOf(wire.reply(0)) ? ReleaseOutcome::released : ReleaseOutcome::notOwner;
}

std::optional<Holder> RedisDriver::holder(std::string_view key, Instant deadline) {
  impl_->forkGuard.check();
  Request wire;
  executeScripts(impl_->channel, wire, deadline,
                 [&](Request& call, Script::By by) { impl_->addHolder(call, by, key); });
  return impl_->holderIn(wire.reply(0), false);
}

Promises RedisDriver::promises() const {
  impl_->forkGuard.check();
  return {.fence = impl_->options().fence ? FencePromise::whileStoreKeepsWrites : FencePromise::none,
          .durability = impl_->connector.durability()};
}

void RedisDriver::list(std::string_view prefix,
                       const std::function<bool(std::string_view key, const Holder& holder)>& visit,
                       Instant deadline) {
  impl_->forkGuard.check();
  const std::string glob = globOf(prefix);
  std::unordered_set<std::string> seen;  // a scan may meet a key more than once
  std::string cursor = "0";
  do {
    Request scan;
    scan.add({"SCAN", cursor, "MATCH", glob, "COUNT", keysPerScan, "TYPE", "string"});
    impl_->channel.execute(scan, deadline);
    const Reply& page = scan.reply(0);
    if (page.kind == ReplyKind::error) impl_->refuse(page);
    if (page.items.size() != 2 || page.items[1].kind != ReplyKind::array) impl_->unexpected();
    cursor = page.items[0].text;

    std::vector<std::string_view> keys;
    for (const Reply& key : page.items[1].items) {
      const bool companion = key.text.find(reservedMark) != std::string::npos;
      if (!companion && seen.insert(key.text).second) keys.push_back(key.text);
    }
    if (keys.empty()) continue;
    Request holders;
    executeScripts(impl_->channel, holders, deadline, [&](Request& call, Script::By by) {
      for (const std::string_view key : keys) impl_->addHolder(call, by, key);
    });
    for (std::size_t index = 0; index < keys.size(); ++index) {
      const auto holder = impl_->holderIn(holders.reply(index), true);
      if (holder && !visit(keys[index], *holder)) return;
    }
  } while (cursor != "0");
}

bool RedisDriver::breakLock(std::string_view key, Instant deadline) {
  impl_->forkGuard.check();
  Request wire;
  wire.add({"DEL", key});
  impl_->channel.execute(wire, deadline);
  return impl_->flagOf(wire.reply(0));
}

// To the bare SET … NX.
AcquireResult RedisDriver::Impl::setResult(const Request& request) {
  const Reply& reply = request.reply(0);
  if (reply.kind == ReplyKind::error) refuse(reply);
  if (reply.kind == ReplyKind::nil) return Busy{};
  if (reply.kind != ReplyKind::status || reply.text != "OK") unexpected();
  return Granted{request.sentAt(), std::nullopt};
}

// To the script. A grant and a refusal have their own first word, so that neither can be taken for the other.
AcquireResult RedisDriver::Impl::scriptResult(const Request& request) {
  const Reply& reply = request.reply(0);
  if (reply.kind == ReplyKind::error) refuse(reply);
  if (reply.items.size() != 2 || reply.items[1].kind != ReplyKind::integer) unexpected();
  const std::int64_t detail = reply.items[1].integer;
  if (reply.items[0].isInteger(0)) return detail < 0 ? Busy{} : Busy{milliseconds(detail)};
  if (!reply.items[0].isInteger(1) || options().fence != (detail > 0)) unexpected();
  return Granted{request.sentAt(), options().fence ? std::optional<Fence>(detail) : std::nullopt};
}

void RedisDriver::Impl::addReplicaWait(Request& request) const {
  if (options().minReplicas == 0) return;
  request.add({"WAIT", std::to_string(options().minReplicas), decimal(options().replicaTimeout)});
}

// How many replicas have all that this connection wrote: the last reply of a request that addReplicaWait()
// ended.
std::int64_t RedisDriver::Impl::replicasOf(const Request& request) {
  const Reply& reply = request.reply(request.size() - 1);
  if (reply.kind == ReplyKind::error) return 0;
  if (reply.kind != ReplyKind::integer) unexpected();
  return reply.integer;
}

void RedisDriver::Impl::addHolder(Request& request, Script::By by, std::string_view key) const {
  const std::string counter = companionKey(key, "fence");
  const std::array<std::string_view, 2> keys = {key, counter};
  Script::holder().addTo(request, by, std::span(keys).first(options().fence ? 2 : 1), {});
}

std::optional<Holder> RedisDriver::Impl::holderIn(const Reply& reply, bool oursOnly) {
  if (reply.kind == ReplyKind::error) refuse(reply);
  if (reply.kind == ReplyKind::nil) return std::nullopt;
  if (reply.items.size() != 3 || reply.items[1].kind != ReplyKind::integer) unexpected();
  const std::optional<std::string> owner = ownerIn(reply.items[0].text);
  if (!owner && oursOnly) return std::nullopt;
  Holder holder;
  holder.owner = owner.value_or("");
  if (reply.items[1].integer >= 0) holder.remaining = milliseconds(reply.items[1].integer);
  if (owner && reply.items[2].kind == ReplyKind::bulk) holder.fence = parseFence(reply.items[2].text);
  return holder;
}

bool RedisDriver::Impl::flagOf(const Reply& reply) {
  if (reply.kind == ReplyKind::error) refuse(reply);
  if (!reply.isInteger(0) && !reply.isInteger(1)) unexpected();
  return reply.integer == 1;
}

RenewOutcome RedisDriver::Impl::renewed(const Reply& reply) {
  if (reply.kind == ReplyKind::error) {
    const ErrorCode code = faultOf(connector.store(), reply).code;
    return code == ErrorCode::outcomeUnknown ? RenewOutcome::unknown : RenewOutcome::unavailable;
  }
  return flagOf(reply) ? RenewOutcome::renewed : RenewOutcome::notOwner;
}

void RedisDriver::Impl::refuse(const Reply& reply) {
  const ServerFault fault = faultOf(connector.store(), reply);
  // It was the master once; the next connection may lead to the one that took over.
  if (isError(reply, "READONLY")) channel.disconnect("the server is not the master any more");
  throwError(fault.code, fault.text);
}

void RedisDriver::Impl::unexpected() {
  const std::string why = "the server sent a reply of an unexpected form";
  channel.disconnect(why);
  throw ProtocolError(connector.store() + ": " + why);
}

}  // namespace lockkeeper::redis
