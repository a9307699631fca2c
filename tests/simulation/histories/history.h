#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "simulation/clients/client.h"
#include "simulation/histories/scene.h"
#include "simulation/histories/shrink.h"
#include "simulation/histories/trouble.h"

namespace lockkeeper::simulation {

/// What kind of store the histories are of, what goes wrong there and what its clients do.
struct Family {
  const char* uri;
  std::size_t nodes;  ///< Redis servers; 0: an etcd cluster.
  /// The most by which their clocks gain or lose.
  double nodeDrift;
  /// How many of them may keep a key that was released until its lease ends: a majority frees it.
  std::size_t keep;
  std::unique_ptr<Trouble> (*trouble)(Scene& scene, int processes, Chance& chance);
  std::unique_ptr<Client> (*client)(const ClientSetting& setting);
  /// Makes more of the nodes than independent servers; null: they stay that.
  void (*arrange)(Scene& scene) = nullptr;
  /// The store may forget a holder whose lease runs, by a fault that it survives in another way.
  bool forgets = false;
  /// How long what the clients have put there may stay after them.
  std::chrono::seconds leavesFor{15};
};

struct Outcome {
  std::vector<std::string> faults;
  std::uint64_t hash = 0;
  std::uint64_t grants = 0;
  std::uint64_t torn = 0;
  std::uint64_t slow = 0;
  std::uint64_t pauses = 0;
  std::uint64_t switches = 0;
  bool changed = false;  // a script that was run had the change
  Happened happened{};
  std::vector<std::string> trace{};
};

/// A defect in the scripts of the store: `to` in the place of `from`.
struct ScriptChange {
  const char* from = "";
  const char* to = "";
};

/// Four processes with a client and two workers each, on one store.
class History {
 public:
  History(const Family& family, std::uint64_t seed, const ScriptChange& change = {}, const Kept& kept = {},
          bool traced = false);

  Outcome run();

 private:
  void live();
  void leaveNothing();
  void leaveNothingOf(const std::string& owner);
  void process(int id);
  void work(Client& client, std::uint32_t worker);

  const Family& family_;
  const std::uint64_t seed_;
  Scene scene_;
  Chance chance_;
  bool faulty_ = false;
};

/// Runs the history with the fewest events with which it still fails, and tells what happens in it.
std::string shrunkTrace(const Family& family, std::uint64_t seed, const ScriptChange& change = {});

}  // namespace lockkeeper::simulation
