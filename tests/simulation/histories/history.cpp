#include "simulation/histories/history.h"

#include <cstddef>
#include <map>
#include <span>
#include <thread>
#include <utility>

#include "lockkeeper/etcd/use.h"
#include "lockkeeper/redis/use.h"

namespace lockkeeper::simulation {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t firstAddress = 0x0A000001;  // 10.0.0.1
constexpr int processCount = 4;
constexpr std::uint32_t operationCount = 12;  // of a worker

// Bytes of the run, so that the same seed makes the same tokens.
class RandomOfRun final : public Random {
 public:
  explicit RandomOfRun(Chance& chance) : chance_(chance) {}
  void fill(std::span<std::byte> out) override {
    for (std::byte& each : out) each = static_cast<std::byte>(chance_());
  }

 private:
  Chance& chance_;
};

/// Hears how the leases of a process go on, and judges it.
class LeaseListener final : public Listener {
 public:
  /// `forgets`: see Family.
  LeaseListener(Scene& scene, bool forgets) : scene_(scene), forgets_(forgets) {}
  void on(const lockkeeper::Event& event) override {
    const std::string key(event.key);
    if (event.kind == EventKind::renewed)
      scene_.believers.renewed(key, std::chrono::nanoseconds(event.ended.time_since_epoch()).count());
    if (event.kind == EventKind::renewalFailed && event.remaining <= 0ns)
      scene_.judge.fail(key, "is said to be held on after its lease has ended");
    if (event.kind == EventKind::lost && event.loss == LossReason::notOwner) lost(key);
  }

 private:
  // A store that remembers its holders has a lock that one of them renews.
  void lost(const std::string& key) {
    Scheduler& scheduler = scene_.scheduler;
    // Who was paused may hear of it before he notices that his lease has ended.
    const bool lately = scheduler.process(scheduler.thisProcess()).pausedUntil + 3 * second > scheduler.now();
    if (!lately && !forgets_) scene_.judge.fail(key, "was not its holder's when it was renewed");
  }

  Scene& scene_;
  const bool forgets_;
};

Choice choiceOf(std::uint64_t seed, const Kept& kept, bool traced) {
  const double switching = seed % 3 == 0 ? 0.5 : seed % 3 == 1 ? 0.1 : 0.01;
  return {.seed = seed, .switching = switching, .kept = kept, .traced = traced};
}

}  // namespace

const StoreRegistry& stores() {
  static const StoreRegistry all = [] {
    StoreRegistry made;
    redis::use(made);
    etcd::use(made);
    return made;
  }();
  return all;
}

History::History(const Family& family, std::uint64_t seed, const ScriptChange& change, const Kept& kept,
                 bool traced)
    : family_(family), seed_(seed), scene_(choiceOf(seed, kept, traced)), chance_(seed, 5) {
  if (family.nodes == 0) scene_.etcd = std::make_unique<EtcdCluster>(scene_.scheduler, scene_.network, seed);
  Chance drift(seed, 6);
  for (std::uint32_t i = 0; i < family.nodes; ++i) {
    scene_.nodes.push_back(std::make_unique<RedisNode>(
        scene_.scheduler, scene_.network, "node " + std::to_string(i + 1), firstAddress + i, seed));
    scene_.nodes.back()->changeScripts(change.from, change.to);
    scene_.nodes.back()->setDrift(family.nodeDrift * (static_cast<double>(drift.upTo(20)) - 10) / 10);
  }
  if (family.arrange) family.arrange(scene_);
}

Outcome History::run() {
  try {
    scene_.scheduler.run([this] { live(); });
  } catch (const Unending& fault) {
    scene_.judge.fail("the history", fault.what());
  }
  Outcome outcome{.faults = scene_.judge.faults(),
                  .hash = scene_.scheduler.traceHash(),
                  .grants = scene_.believers.grants() + scene_.admissions.count() + scene_.readings.count() +
                            scene_.arrivals.openings() + scene_.leaders.terms() + scene_.ticks.runs(),
                  .torn = scene_.network.torn(),
                  .slow = scene_.network.slow(),
                  .pauses = scene_.judge.pauses(),
                  .switches = scene_.scheduler.switches(),
                  .trace = scene_.scheduler.traceLines()};
  for (const auto& node : scene_.nodes) outcome.changed = outcome.changed || node->hasChangedScripts();
  for (std::size_t kind = 0; kind < eventKinds; ++kind)
    outcome.happened[kind] = scene_.scheduler.occasions(static_cast<Event>(kind)).happened();
  return outcome;
}

void History::live() {
  faulty_ = chance_.happens(0.7);
  if (faulty_) scene_.network.faults = {.slow = 0.02, .slowest = 4 * second, .torn = 0.01};
  scene_.working = processCount;
  scene_.judge.calm = !faulty_;
  std::vector<std::thread> computers;
  for (int i = 0; i < processCount; ++i) {
    const int id = scene_.scheduler.addProcess({.name = "process " + std::to_string(i),
                                                .drift = 1e-4 * (static_cast<double>(chance_.upTo(20)) - 10),
                                                .bootOffset = static_cast<Time>(chance_.upTo(1000)) * second,
                                                .wallOffset = static_cast<Time>(chance_.upTo(100)) * second});
    computers.emplace_back([this, id] { process(id); });
  }
  // It has planned what comes later, too.
  const std::unique_ptr<Trouble> trouble = family_.trouble(scene_, processCount, chance_);
  std::thread troubled([&] {
    if (faulty_) trouble->make();
  });
  for (std::thread& each : computers) each.join();
  troubled.join();
  leaveNothing();
  scene_.admissions.check();
  scene_.ticks.check();
}

// What is there when everybody has gone and each lease has ended: counters of fences, what is known of
// the nodes and the rules of a migration, and nothing else.
void History::leaveNothing() {
  std::this_thread::sleep_for(family_.leavesFor);
  for (const auto& node : scene_.nodes) {
    for (const std::string& name : node->keys().names()) {
      const bool stays = name.find("fence") != std::string::npos || name == ":lockkeeper:run" ||
                         name == "migration:lockkeeper:board";
      if (!stays) scene_.judge.fail(name, "is left");
    }
  }
  if (!scene_.etcd) return;
  for (const auto& [name, key] : scene_.etcd->keys().all()) scene_.judge.fail(name, "is left");
}

// What a process has released, the servers have released when its client has ended, or after
// releaseHeldFor(). Of several, the majority frees the key; the others were not waited for, and may keep it
// until its lease ends.
void History::leaveNothingOf(const std::string& owner) {
  // The shortest lease of etcd is two seconds, and it looks twice a second which of them have ended.
  std::this_thread::sleep_for(scene_.etcd ? 3s : 400ms);
  const Uninterrupted looksAtAll(scene_.scheduler);
  std::map<std::string, std::size_t> left;
  for (const auto& node : scene_.nodes) {
    Keyspace& keys = node->keys();
    for (const std::string& name : keys.names()) {
      std::string held = keys.execute({"GET", name})->text;
      const RedisReply shares = *keys.execute({"ZRANGE", name, "0", "-1", "WITHSCORES"});
      for (std::size_t i = 0; i + 1 < shares.items.size(); i += 2) {
        const bool runs = std::stod(shares.items[i + 1].text) * 1000 > static_cast<double>(node->micros());
        if (runs) held += shares.items[i].text;
      }
      if (held.find("@" + owner) != std::string::npos) ++left[name];
    }
  }
  if (scene_.etcd) {
    for (const auto& [name, key] : scene_.etcd->keys().all()) {
      if (key.value.find("@" + owner) != std::string::npos) scene_.judge.fail(name, "is left by " + owner);
    }
  }
  for (const auto& [name, nodes] : left) {
    if (nodes > family_.keep) scene_.judge.fail(name, "is left by " + owner);
  }
}

void History::process(int id) {
  scene_.scheduler.enterProcess(id);
  const std::string owner = "p" + std::to_string(id);
  Environment environment;
  environment.random = std::make_shared<RandomOfRun>(scene_.scheduler.chance());
  environment.listener = std::make_shared<LeaseListener>(scene_, family_.forgets);
  auto client =
      family_.client({scene_, owner, family_.uri, stores().open(family_.uri, environment), environment});
  const auto worker = static_cast<std::uint32_t>(2 * id);
  std::thread other([&] { work(*client, worker + 1); });
  work(*client, worker);
  other.join();
  if (--scene_.working == 0) scene_.network.faults = {};
  client->settle();
  client = nullptr;
  if (!faulty_) leaveNothingOf(owner);
}

void History::work(Client& client, std::uint32_t worker) {
  Scheduler& scheduler = scene_.scheduler;
  scheduler.nameThread(scheduler.process(scheduler.thisProcess()).name + (worker % 2 == 0 ? ".a" : ".b"));
  for (std::uint32_t i = 0; i < operationCount; ++i) {
    const std::uint32_t number = 100 * worker + i;
    if (scheduler.occasions(Event::operation).isKept(number)) client.operate(Chance(seed_, 1000 + number));
  }
}

std::string shrunkTrace(const Family& family, std::uint64_t seed, const ScriptChange& change) {
  const Kept few = shrink(History(family, seed, change).run().happened, [&](const Kept& kept) {
    return !History(family, seed, change, kept).run().faults.empty();
  });
  const Outcome outcome = History(family, seed, change, few, true).run();
  std::string text = "with";
  static const char* const kinds[eventKinds] = {"faults",      "torn",       "slow",
                                                "short reads", "operations", "preemptions"};
  for (std::size_t kind = 0; kind < eventKinds; ++kind)
    text +=
        " " + std::to_string(few[kind]->size()) + " " + kinds[kind] + (kind + 1 < eventKinds ? "," : ":\n");
  for (const std::string& line : outcome.trace) text += line + "\n";
  for (const std::string& fault : outcome.faults) text += fault + "\n";
  return text;
}

}  // namespace lockkeeper::simulation
