#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "simulation/machine/scheduler.h"
#include "simulation/network/network.h"
#include "simulation/redis/keyspace.h"
#include "simulation/redis/replication.h"
#include "simulation/redis/script_engine.h"

namespace lockkeeper::simulation {

class ClusterView;

/// One Redis 7.0 server: its keys, scripts, channels and connections, on a wall clock of its own.
class RedisNode final : public Server {
 public:
  RedisNode(Scheduler& scheduler, Network& network, std::string name, std::uint32_t ip, std::uint64_t seed);

  const std::string& name() const noexcept { return name_; }
  std::uint32_t ip() const noexcept { return ip_; }
  /// As numbers and dots.
  std::string address() const;

  std::unique_ptr<Session> accept(Connection& connection) override;

  /// The server ends at once and starts again, without its data when `empty`. Its clients are not told when
  /// its computer has lost its power.
  void restart(bool empty, bool told = true);
  /// Refuses connections until then.
  void stopUntil(Time time) { stoppedUntil_ = time; }
  /// Sets its wall clock forward, or back.
  void stepClock(Time length) { wallOffset_ += length; }
  /// How its wall clock runs: 0.001 gains a millisecond in a second. For a node that nobody has used yet.
  void setDrift(double drift) { drift_ = drift; }
  /// What its wall clock says, in microseconds.
  std::int64_t micros() const;
  /// Ends its connections.
  void disconnect(bool told = true) { network_.endAll(ip_, port, told); }
  Replication& replication() noexcept { return replication_; }
  /// From now on it is a node of a cluster.
  void join(std::shared_ptr<ClusterView> cluster) { cluster_ = std::move(cluster); }
  ClusterView* cluster() noexcept { return cluster_.get(); }
  /// Who listens there is told that it is over.
  void dropChannels(const std::function<bool(const std::string& channel)>& which);
  /// Its answers to commands that write are errors while it has no memory left.
  bool outOfMemory = false;

  /// A change in its scripts (ScriptEngine::change()), kept when it restarts.
  void changeScripts(std::string from, std::string to);
  bool hasChangedScripts() const noexcept { return hasChanged_ || scripts_->hasChanged(); }

  static constexpr std::uint16_t port = 6379;

  Keyspace& keys() noexcept { return keys_; }
  std::uint64_t commands() const noexcept { return commands_; }

 private:
  class Client;
  friend class Client;

  RedisReply execute(Client& client, const Words& words);
  RedisReply executeScript(const Words& words, bool bySha1);
  RedisReply callOfScript(const Words& words);
  RedisReply publish(const std::string& channel, const std::string& message, bool sharded);
  RedisReply subscribers(const Words& words) const;
  /// Clients whose WAIT may end now.
  void lookAtWaiting();
  std::string info() const;
  void start();

  Scheduler& scheduler_;
  Network& network_;
  const std::string name_;
  const std::uint32_t ip_;
  Time wallOffset_ = 0;
  double drift_ = 0;
  Time stoppedUntil_ = 0;
  std::string runId_;
  Chance chance_;
  Keyspace keys_;
  Replication replication_;
  std::shared_ptr<ClusterView> cluster_;  // null: it is alone
  std::unique_ptr<ScriptEngine> scripts_;
  std::pair<std::string, std::string> change_;
  bool hasChanged_ = false;
  std::map<std::string, std::map<std::uint64_t, Client*>> channels_;  // by the number of the client
  std::map<std::uint64_t, Client*> waiting_;                          // in WAIT; by their number, too
  bool published_ = false;
  std::uint64_t clients_ = 0;
  std::uint64_t commands_ = 0;
};

}  // namespace lockkeeper::simulation
