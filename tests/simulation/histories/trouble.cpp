#include "simulation/histories/trouble.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>

namespace lockkeeper::simulation {

void Trouble::make() {
  scene_.scheduler.nameThread("trouble");
  for (std::uint32_t i = 0; i < 10; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(chance_.upTo(rest())));
    const int process = 1 + static_cast<int>(chance_.upTo(static_cast<std::uint64_t>(processes_) - 1));
    const Time until = scene_.scheduler.now() + static_cast<Time>(chance_.upTo(3 * second));
    const Fault fault = choose(process, until);
    if (scene_.scheduler.occasions(Event::fault).isKept(i)) fault();
  }
}

std::string Trouble::length(Time until) const {
  return " for " + std::to_string((until - scene_.scheduler.now()) / millisecond) + " ms";
}

Trouble::Fault Trouble::pauseOf(int process, Time until, bool whenAnswered) {
  const auto pause = [this, process, until] {
    if (until <= scene_.scheduler.now()) return;
    Process& its = scene_.scheduler.process(process);
    scene_.scheduler.trace("network", [&] { return its.name + " is paused" + length(until); });
    its.pausedUntil = until;
    scene_.judge.paused(until);
  };
  if (!whenAnswered) return pause;
  return [this, process, pause] { scene_.network.atNextReply(process, pause); };
}

Trouble::Fault Trouble::silenceOf(int process, const std::string& server, std::uint32_t ip, Time until) {
  return [this, process, server, ip, until] {
    scene_.scheduler.trace([&] {
      return scene_.scheduler.process(process).name + " has no network to " + server + length(until);
    });
    scene_.network.hold(process, ip, until);
  };
}

Trouble::Fault Trouble::restartOf(RedisNode& node, bool empty, Time awayUntil, bool told) {
  return [this, &node, empty, awayUntil, told] {
    scene_.scheduler.trace([&] {
      return node.name() + (told ? " restarts" : " has no power") + (empty ? " and is empty" : "") +
             (awayUntil > scene_.scheduler.now() ? ", and is away" + length(awayUntil) : "");
    });
    node.restart(empty, told);
    if (awayUntil > 0) node.stopUntil(awayUntil);
  };
}

Trouble::Fault Trouble::wallClockOf(int process, Time step) {
  return [this, process, step] {
    Process& its = scene_.scheduler.process(process);
    scene_.scheduler.trace([&] {
      return "the wall clock of " + its.name + " is set by " + std::to_string(step / millisecond) + " ms";
    });
    its.wallOffset += step;
  };
}

Trouble::Fault TroubleOfOne::choose(int process, Time until) {
  RedisNode& node = *scene_.nodes.front();
  const Time step = static_cast<Time>(chance_.upTo(8 * second)) - 4 * second;
  switch (chance_.upTo(5)) {
    case 0:
      return pauseOf(process, until, step > 0);
    case 1:
      return silenceOf(process, node, until);
    case 2:
      return restartOf(node, false, 0);
    case 3:
      return wallClockOf(process, step);
    case 4:
      return restartOf(node, false, until, false);
    default:
      return restartOf(node, false, until);
  }
}

TroubleOfValues::TroubleOfValues(Scene& scene, int processes, Chance& chance)
    : Trouble(scene, processes, chance) {
  scene.network.faults.inTime = true;
}

Trouble::Fault TroubleOfValues::choose(int /*process*/, Time until) {
  return restartOf(*scene_.nodes.front(), false, chance_.happens(0.5) ? until : 0);
}

Trouble::Fault TroubleOfQuorum::choose(int process, Time until) {
  const std::uint64_t what = chance_.upTo(6);
  RedisNode& node = *scene_.nodes[chance_.upTo(scene_.nodes.size() - 1)];
  RedisNode& other = *scene_.nodes[chance_.upTo(scene_.nodes.size() - 1)];
  const Time step = static_cast<Time>(chance_.upTo(3 * second)) - second / 2;
  switch (what) {
    case 0:
      return pauseOf(process, until);
    case 1:
      return [one = silenceOf(process, node, until), two = silenceOf(process, other, until)] {
        one();
        two();
      };
    case 2:
      return [this, &node, &other, until] {
        for (int each = 1; each <= processes_; ++each) {
          silenceOf(each, node, until)();
          silenceOf(each, other, until)();
        }
      };
    case 3:
      return restartOf(node, true, 0);
    case 4:
      return restartOf(node, true, until, step > second);
    case 5:
      return restartOf(node, false, 0);
    default:
      return [this, &node, step] { stepClock(node, step); };
  }
}

Trouble::Fault TroubleOfMigration::choose(int process, Time until) {
  const std::uint64_t what = chance_.upTo(6);
  RedisNode& node = *scene_.nodes[chance_.upTo(scene_.nodes.size() - 1)];
  RedisNode& state = *scene_.nodes.back();
  const Time step = static_cast<Time>(chance_.upTo(20 * second)) - 10 * second;
  switch (what) {
    case 0:
      return pauseOf(process, until);
    case 1:
      return pauseOf(process, until + 8 * second);
    case 2:
      return silenceOf(process, node, until);
    case 3:
      return silenceOf(process, state, until + 3 * second);
    case 4:
      return restartOf(node, &node == &state, until, step > 0);
    case 5:
      return restartOf(node, false, 0);
    default:
      return [this, &state, step, process = wallClockOf(process, -step)] {
        process();
        scene_.scheduler.trace([&] {
          return "the clock of " + state.name() + " is set by " + std::to_string(step / millisecond) + " ms";
        });
        state.stepClock(step);
      };
  }
}

void TroubleOfQuorum::stepClock(RedisNode& node, Time step) {
  const Uninterrupted looksAtAll(scene_.scheduler);
  if (step > 0 && !mayForget(node)) return;
  scene_.scheduler.trace([&] {
    return "the clock of " + node.name() + " is set by " + std::to_string(step / millisecond) + " ms";
  });
  node.stepClock(step);
}

// Whether each vote of the node is also that of a quorum of others, for as long: so none of them is needed.
bool TroubleOfQuorum::mayForget(RedisNode& node) {
  const auto lengthOf = [](RedisNode& its, const std::string& key) {
    return its.keys().execute({"PTTL", key})->number;
  };
  const auto names = node.keys().names();
  return std::all_of(names.begin(), names.end(), [&](const std::string& key) {
    const RedisReply vote = *node.keys().execute({"GET", key});
    const std::int64_t length = lengthOf(node, key);
    const auto same = std::count_if(scene_.nodes.begin(), scene_.nodes.end(), [&](const auto& each) {
      return *each->keys().execute({"GET", key}) == vote && lengthOf(*each, key) + 1 >= length;
    });
    return length < 0 || static_cast<std::size_t>(same) - 1 > scene_.nodes.size() / 2;
  });
}

Trouble::Fault TroubleOfEtcd::choose(int process, Time until) {
  const auto member = static_cast<std::uint32_t>(chance_.upTo(EtcdCluster::members - 1));
  const std::string name = "member " + std::to_string(member + 1);
  switch (chance_.upTo(3)) {
    case 0:
      return pauseOf(process, until);
    case 1:
      return silenceOf(process, name, EtcdCluster::ip(member), until);
    case 2:
      return [this, member, name, until] {
        scene_.scheduler.trace([&] { return name + " is away" + length(until); });
        scene_.etcd->stop(member, until);
      };
    default:
      return [this, until] {
        scene_.scheduler.trace([&] { return "there is no leader" + length(until); });
        scene_.etcd->electUntil(until);
      };
  }
}

}  // namespace lockkeeper::simulation
