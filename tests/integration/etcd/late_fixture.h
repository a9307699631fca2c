#pragma once

#include <memory>
#include <string>
#include <thread>

#include "etcd_waiters.h"
#include "fault_proxy.h"

namespace lockkeeper::test {

/// A server that gets requests when their caller has given them up long since.
class EtcdLate : public EtcdWaiters {
 protected:
  using EtcdWaiters::wait;
  Result wait(const Claimant& who, std::stop_token stop) const { return wait(proxied, who, std::move(stop)); }
  Result wait(const Claimant& who) const { return wait(proxied, who); }

  /// Keeps one transaction that changes something back, after `before` others.
  void keepBack(const std::string& text, std::size_t before = 0) {
    proxy.set({.kind = ProxyFault::Kind::hold, .text = text, .requests = before});
  }
  /// The server gets it now.
  void sendLate() const { sendLate(proxy.held()); }
  static void sendLate(const std::string& held) {
    ASSERT_NE(held.find("\r\n\r\n"), std::string::npos) << "something was kept back";
    (void)cluster().request("/v3/kv/txn", held.substr(held.find("\r\n\r\n") + 4));
  }
  /// While the result lives, whoever has sent what is kept back loses the connection, and so gives it up at
  /// once.
  std::jthread endHeldConnection() {
    return std::jthread([this] {
      if (waitUntil([this] { return proxy.fired() > 0; })) proxy.endHeldConnections(Ending::rst);
    });
  }
  template <class Call>
  void expectDoubt(Call&& call) {
    const auto ending = endHeldConnection();
    EXPECT_THROW((void)call(), OutcomeUnknown);
  }

  FaultProxy proxy{cluster().port(0)};
  const std::shared_ptr<LockDriver> proxied = openEtcd(etcdUri(proxy.port()));
  const std::shared_ptr<LockDriver> direct = open();
};

/// What the requests say that are kept back.
/// @{
inline constexpr const char* aPut = "request_put";
inline constexpr const char* aRemoval = "request_delete_range";
inline constexpr const char* aRevocation = "/v3/lease/revoke";
/// @}

}  // namespace lockkeeper::test
