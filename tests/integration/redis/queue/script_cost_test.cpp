// How many commands the scripts of a lock call, which is most of what a lock costs its server.

#include <barrier>
#include <map>
#include <sstream>
#include <thread>

#include "queue_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class ScriptCost : public RedisQueueTest {
 protected:
  /// So that no fence is behind the server's clock.
  ScriptCost() {
    const auto ahead = std::chrono::system_clock::now() + 1h;
    const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(ahead.time_since_epoch());
    server.command({"SET", "{k}:lockkeeper:fence", std::to_string(micros.count())});
  }

  using Calls = std::map<std::string, int>;

  /// Of each command, since they were counted anew. "scripts" are all scripts together.
  Calls calls() const {
    Calls all;
    std::istringstream lines(server.command({"INFO", "commandstats"}));
    for (std::string line; std::getline(lines, line);) {
      const std::size_t colon = line.find(":calls=");
      if (!line.starts_with("cmdstat_") || colon == std::string::npos) continue;
      const std::string name = line.substr(8, line.find_first_of(":|") - 8);
      if (name == "info" || name == "config") continue;
      all[name.starts_with("eval") ? "scripts" : name] += std::stoi(line.substr(colon + 7));
    }
    return all;
  }
  void countAnew() const { server.command({"CONFIG", "RESETSTAT"}); }
};

TEST_F(ScriptCost, ALockForWhichNobodyWaitsTakesTwoScriptsOfSixCommands) {
  LockManager manager(direct);
  manager.lock("k").release();
  countAnew();
  manager.lock("k").release();
  EXPECT_EQ(
      calls(),
      (Calls{{"scripts", 2}, {"time", 1}, {"set", 1}, {"incr", 1}, {"get", 1}, {"exists", 1}, {"del", 1}}));
}

TEST_F(ScriptCost, ATurnOfAKeyForWhichSeveralWaitTakesTwoScriptsOfSeventeenCommands) {
  constexpr int processes = 6;
  constexpr int rounds = 40;
  std::barrier together(processes, [this]() noexcept { countAnew(); });
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < processes; ++i) {
      all.emplace_back([&] {
        LockManager manager(openRedis(server.port()));
        const auto take = [&](int times) {
          for (; times > 0; --times) const Lock lock = manager.lock("k", {.waitFor = 1min});
        };
        take(10);  // so that all have a channel
        together.arrive_and_wait();
        take(rounds);
      });
    }
  }
  const Calls made = calls();
  int commands = 0;
  for (const auto& [name, count] : made) commands += name == "scripts" ? 0 : count;
  constexpr int turns = processes * rounds;
  // What comes now and then, such as the first of a second to wait, is left room for.
  EXPECT_LT(made.at("scripts"), 2.2 * turns);
  EXPECT_LT(commands, 18.5 * turns);
}

}  // namespace
}  // namespace lockkeeper::test
