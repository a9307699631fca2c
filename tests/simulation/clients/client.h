#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/environment.h"
#include "lockkeeper/store_registry.h"
#include "simulation/histories/scene.h"
#include "simulation/machine/chance.h"

namespace lockkeeper::simulation {

/// All kinds of stores of the simulation.
const StoreRegistry& stores();

/// What the client of a process is made with.
struct ClientSetting {
  Scene& scene;
  std::string owner;
  std::string uri;  ///< That of the driver.
  std::shared_ptr<LockDriver> driver;
  Environment environment;
  std::chrono::milliseconds longestHold{2500};  ///< For which a key is held now and then.
};

/// How long each of its attempts, and each I/O of the driver, may take.
inline constexpr std::chrono::milliseconds operationTimeout{1000};
inline constexpr std::chrono::milliseconds ioTimeout{2000};

/// Cancels a call after a while, as another thread of its program does.
class Cancellation {
 public:
  explicit Cancellation(std::chrono::milliseconds after)
      : thread_([after, source = source_]() mutable {
          std::this_thread::sleep_for(after);
          source.request_stop();
        }) {}
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;
  ~Cancellation() { thread_.join(); }

  std::stop_token token() const noexcept { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::thread thread_;
};

/// What the workers of a process do with the store.
class Client {
 public:
  virtual ~Client() = default;
  /// One operation, of whatever kind `chance` chooses. Called by several threads.
  virtual void operate(Chance chance) = 0;
  /// When its workers have ended. It may wait for those of others.
  virtual void settle() {}
};

/// One of the keys a and b, as a whole or a share of it, or both of them.
std::unique_ptr<Client> lockClient(const ClientSetting& setting);
/// The same, more of them held for so long that they are renewed.
std::unique_ptr<Client> renewedLockClient(const ClientSetting& setting);
/// As lockClient() without shares.
std::unique_ptr<Client> wholeLockClient(const ClientSetting& setting);
/// Permits and all of the key p, shares of a and b that are upgraded at times, and several keys together.
std::unique_ptr<Client> permitClient(const ClientSetting& setting);
/// Whole keys in the stores of a migration, 10.0.0.1 and 10.0.0.2. Its state is on 10.0.0.3.
std::unique_ptr<Client> migrationClient(const ClientSetting& setting);
/// Reads of a value through a cache, and changes of it.
std::unique_ptr<Client> valueClient(const ClientSetting& setting);
/// Counts at latches, waits for them, and a barrier that all processes come to, round after round.
std::unique_ptr<Client> latchClient(const ClientSetting& setting);
/// Candidates for one leadership, who resign and come anew.
std::unique_ptr<Client> electionClient(const ClientSetting& setting);
/// Instances of a service with a task that is scheduled, and one that is run now and then.
std::unique_ptr<Client> taskClient(const ClientSetting& setting);
/// Calls under three limits, of different kinds, by one key.
std::unique_ptr<Client> limitClient(const ClientSetting& setting);

}  // namespace lockkeeper::simulation
