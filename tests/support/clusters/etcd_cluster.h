#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "process.h"
#include "temp_folder.h"

namespace lockkeeper::test {

struct EtcdOptions {
  std::size_t nodes = 3;
  bool tls = false;                   ///< Clients speak TLS, with a certificate for localhost and 127.0.0.1.
  bool gateway = true;                ///< False: its members have no JSON gateway.
  bool otherHostCertificate = false;  ///< With tls: a certificate that is good, but for another host.

  /// Not empty: etcd's authentication is on. The user "keeper" has this password, and may read and write
  /// below /lockkeeper/ and nothing else.
  std::string password{};
};

/// A real etcd cluster on free loopback ports, each node with a folder of its own. Killed when the object
/// ends. One thread at a time, except uri() and request().
class EtcdCluster {
 public:
  /// Returns when all nodes are healthy. Throws std::runtime_error, with the servers' logs, when they cannot
  /// be started.
  explicit EtcdCluster(EtcdOptions options = {});
  EtcdCluster(const EtcdCluster&) = delete;
  EtcdCluster& operator=(const EtcdCluster&) = delete;
  ~EtcdCluster();

  std::uint16_t port(std::size_t node) const { return nodes_[node].port; }

  /// etcd://127.0.0.1:port,…, or etcds://, of all nodes, the one named first.
  std::string uri(std::size_t first = 0) const;

  /// Which node leads, as the others say. Throws std::runtime_error when there is none in 30 s.
  std::size_t leader() const;

  void pause(std::size_t node);   ///< SIGSTOP; returns when the kernel has stopped it.
  void resume(std::size_t node);  ///< SIGCONT.
  void kill(std::size_t node);    ///< SIGKILL.
  void start(std::size_t node);   ///< On the same ports, with the same data; returns when it is healthy.

  /// What an independent client (curl) gets for a request to a node that runs: the body. Throws
  /// std::runtime_error when there is no answer in 10 s.
  std::string request(const std::string& path, const std::string& body) const;

  /// With a password: ends all log-ins, by switching the authentication off and on.
  void endLogIns();

  /// The leases that there are.
  std::set<std::int64_t> leases() const;

  /// How long a lease has left; less than nothing when it has ended.
  std::int64_t secondsLeft(std::int64_t lease) const;

  /// A claim that is on a lease, as the cluster has it.
  struct Stored {
    std::string key;           ///< In base64.
    std::int64_t created = 0;  ///< Its create revision; 0: there is no such claim.
    std::int64_t lease = 0;
  };
  /// The claim for this lock that was made first, or last.
  Stored firstClaim(const std::string& lock) const { return claim(lock, "ASCEND"); }
  Stored lastClaim(const std::string& lock) const { return claim(lock, "DESCEND"); }

  /// How many messages watch streams have sent: the first one of each says that it is there.
  std::size_t watchMessages() const { return counted("grpc_server_msg_sent_total", "Watch", "Watch"); }

  /// Writes a key on a lease.
  void put(const std::string& key, const std::string& value, std::int64_t lease) const;

  /// Removes a claim, as an operator would with etcdctl. False: there is none.
  /// @{
  bool remove(const Stored& claim) const;
  bool removeLastClaim(const std::string& lock) const { return remove(lastClaim(lock)); }
  /// @}

  /// How many transactions and reads of keys the nodes that run have served.
  std::size_t requests() const;

  /// A claim that waits for a lock.
  struct Waiting {
    std::string lock;
    std::string owner;
  };
  /// Those below /lockkeeper/locks/: shares that say so, and all others but the first claim of each lock.
  std::vector<Waiting> waitingClaims() const;

  std::string log(std::size_t node) const { return readFile(folder_ / std::to_string(node) / "log"); }

 private:
  struct Node {
    std::uint16_t port = 0;
    std::uint16_t peerPort = 0;
    std::unique_ptr<Process> process{};
    bool paused = false;
  };

  void launch(std::size_t node);
  bool healthy(std::size_t node) const;
  std::string ask(std::size_t node, const std::string& path, const std::string& body) const;
  Stored claim(const std::string& lock, const std::string& order) const;
  std::size_t counted(const std::string& counter, const std::string& service,
                      const std::string& method) const;
  void switchAuthenticationOn();
  void enableAuthentication();
  std::vector<std::string> commandLine(std::size_t node) const;

  const EtcdOptions options_;
  TempFolder folder_;
  std::vector<Node> nodes_;
  std::string rootToken_;
};

}  // namespace lockkeeper::test
