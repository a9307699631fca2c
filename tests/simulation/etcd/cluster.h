#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "simulation/etcd/keys.h"
#include "simulation/machine/scheduler.h"
#include "simulation/network/network.h"

namespace lockkeeper::simulation {

/// The three members of an etcd cluster, at 10.0.0.1 to 10.0.0.3, with their JSON gateways. What the members
/// agree on is one thing here; that a leader is missing or dies, and what that makes of calls, is simulated.
class EtcdCluster {
 public:
  static constexpr std::uint32_t members = 3;

  EtcdCluster(Scheduler& scheduler, Network& network, std::uint64_t seed);
  ~EtcdCluster();

  static constexpr std::uint32_t ip(std::uint32_t member) { return 0x0A000001 + member; }

  /// The member dies, or its computer does, and refuses connections until then.
  void stop(std::uint32_t member, Time until);
  /// There is no leader until then; the next one starts all leases anew. Of the calls that come meanwhile,
  /// some are refused, and some are carried out by the next leader although their callers were told that time
  /// was over.
  void electUntil(Time until);

  const EtcdKeys& keys() const noexcept { return keys_; }

 private:
  class Member;
  class Client;

  struct Answer {
    int status = 200;
    std::string body;
  };
  Answer answer(const std::string& path, const std::string& body);
  Answer answerWithoutLeader(const std::string& path, const std::string& body);
  void tellWatchers(const EtcdKeys::Removal& removal);
  void lookAtLeasesLater();

  Scheduler& scheduler_;
  Network& network_;
  Chance chance_;
  EtcdKeys keys_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<Client*> watchers_;
  Time electedAt_ = 0;
  bool willLookAtLeases_ = false;
};

}  // namespace lockkeeper::simulation
