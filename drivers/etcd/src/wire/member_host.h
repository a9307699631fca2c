#pragma once

#include <Poco/Net/SocketAddress.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/etcd/etcd_options.h"
#include "lockkeeper/stream/host_lookup.h"

namespace lockkeeper::etcd {

/// Where a member is. Its name is looked up for each new connection, but never twice at the same time: a
/// resolver that hangs holds one thread. Thread-safe.
class MemberHost {
 public:
  /// When a lookup takes longer than `patience`, new connections use what an earlier one has found.
  MemberHost(const Member& member, std::chrono::milliseconds patience, Resolver resolve = resolveBySystem);

  const std::string& name() const { return member_.host; }

  /// The lookup that a new connection has to wait for.
  std::shared_ptr<HostLookup> lookUp(Instant now);

  /// Where that connection may lead: to each of these, or to those found earlier when the lookup has failed.
  /// Empty: the lookup is not done. Throws StreamBroken when no address is known.
  std::optional<std::vector<Poco::Net::SocketAddress>> addressesFrom(HostLookup& lookup);

  /// Which of its addresses a new connection tries first, modulo their number: the one that the last ones
  /// were made to.
  std::size_t turn() const { return turn_; }
  /// Nobody answers at that one. Counts once, however many find out.
  void passOn(std::size_t turn) noexcept { turn_.compare_exchange_strong(turn, turn + 1); }

 private:
  const Member member_;
  const std::chrono::milliseconds patience_;
  const Resolver resolve_;
  std::atomic<std::size_t> turn_ = 0;

  std::mutex mutex_;
  std::shared_ptr<HostLookup> running_;  // the last one, unless it is seen that it is done
  Instant began_{};
  std::shared_ptr<HostLookup> found_;  // the last one that has found addresses
};

}  // namespace lockkeeper::etcd
