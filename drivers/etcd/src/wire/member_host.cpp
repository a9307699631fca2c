#include "wire/member_host.h"

#include <utility>

#include "lockkeeper/stream/stream.h"

namespace lockkeeper::etcd {

namespace {

using Poco::Net::SocketAddress;

// Once the lookup is done. Throws StreamBroken when there are none.
const std::vector<SocketAddress>& addressesIn(const HostLookup& lookup) {
  const auto& addresses = lookup.location().addresses;
  if (addresses.empty()) throw StreamBroken("the host has no address");
  return addresses;
}

}  // namespace

MemberHost::MemberHost(const Member& member, std::chrono::milliseconds patience, Resolver resolve)
    : member_(member), patience_(patience), resolve_(std::move(resolve)) {}

std::shared_ptr<HostLookup> MemberHost::lookUp(Instant now) {
  if (auto known = numericLocation(member_.host, member_.port)) {
    return std::make_shared<HostLookup>(*std::move(known));
  }
  const std::lock_guard guard(mutex_);
  if (running_ && running_->done()) {
    try {
      (void)addressesIn(*running_);
      found_ = running_;
    } catch (const StreamBroken&) {  // those found earlier remain
    }
    running_.reset();
  }
  if (running_) return found_ && now - began_ > patience_ ? found_ : running_;
  began_ = now;
  return running_ = std::make_shared<HostLookup>(member_.host, member_.port, resolve_);
}

std::optional<std::vector<SocketAddress>> MemberHost::addressesFrom(HostLookup& lookup) {
  if (!lookup.done()) return std::nullopt;
  const std::lock_guard guard(mutex_);
  try {
    return addressesIn(lookup);
  } catch (const StreamBroken&) {
    if (!found_) throw;
  }
  return addressesIn(*found_);
}

}  // namespace lockkeeper::etcd
