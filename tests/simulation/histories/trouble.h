#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "simulation/histories/scene.h"
#include "simulation/machine/chance.h"

namespace lockkeeper::simulation {

/// The faults of a history: ten, at times that are chosen. They are those under which the store keeps its
/// promise (docs/guarantees.md).
class Trouble {
 public:
  /// Processes 1 to `processes` use the store.
  Trouble(Scene& scene, int processes, Chance& chance)
      : scene_(scene), processes_(processes), chance_(chance) {}
  Trouble(const Trouble&) = delete;
  Trouble& operator=(const Trouble&) = delete;
  virtual ~Trouble() = default;

  void make();

 protected:
  using Fault = std::function<void()>;
  /// A fault of `process` or of the store, until then. Always asks chance_ for as many numbers.
  virtual Fault choose(int process, Time until) = 0;
  /// The longest time between two faults, in milliseconds.
  virtual std::uint64_t rest() const noexcept { return 1000; }

  /// At once, or between the next reply to the process and what it makes of it.
  Fault pauseOf(int process, Time until, bool whenAnswered = false);
  Fault silenceOf(int process, const std::string& server, std::uint32_t ip, Time until);
  Fault silenceOf(int process, const RedisNode& node, Time until) {
    return silenceOf(process, node.name(), node.ip(), until);
  }
  Fault restartOf(RedisNode& node, bool empty, Time awayUntil, bool told = true);
  /// The wall clock of `process`, by which no lease goes, is set.
  Fault wallClockOf(int process, Time step);
  std::string length(Time until) const;

  Scene& scene_;
  const int processes_;
  Chance& chance_;
};

/// One Redis with an append-only file: no data is lost, and its clock is not set. Those of the processes are.
class TroubleOfOne final : public Trouble {
 public:
  using Trouble::Trouble;

 private:
  Fault choose(int process, Time until) override;
};

/// As above, but what is sent to the server arrives in time or never, and no process is paused before it
/// sends it: a value that comes late replaces a newer one (docs/caches.md).
class TroubleOfValues final : public Trouble {
 public:
  TroubleOfValues(Scene& scene, int processes, Chance& chance);

 private:
  Fault choose(int process, Time until) override;
};

/// Independent nodes, of which a majority can be reached most of the time. They may restart without their
/// data. A clock is set forward only where a quorum remembers what its node forgets.
class TroubleOfQuorum final : public Trouble {
 public:
  using Trouble::Trouble;

 private:
  Fault choose(int process, Time until) override;
  void stepClock(RedisNode& node, Time step);
  bool mayForget(RedisNode& node);
};

/// An etcd of three: its leader dies, a member is away, or some process has no network to a member.
class TroubleOfEtcd final : public Trouble {
 public:
  using Trouble::Trouble;

 private:
  Fault choose(int process, Time until) override;
};

/// The stores of a migration, which lose nothing, and the one that keeps its state, which may lose all of it
/// and whose clock may be set. A process may be gone for so long that the others do not wait for it.
class TroubleOfMigration final : public Trouble {
 public:
  using Trouble::Trouble;

 private:
  Fault choose(int process, Time until) override;
  std::uint64_t rest() const noexcept override { return 3000; }
};

}  // namespace lockkeeper::simulation
