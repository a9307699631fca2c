#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "chosen_seed.h"
#include "faulty_store.h"
#include "history_keys.h"
#include "journal.h"
#include "lockkeeper/error.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/testing/history/json_line.h"
#include "lockkeeper/testing/history/recorder.h"
#include "process.h"
#include "queue_watch.h"
#include "temp_folder.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using testing::history::Phase;
using testing::history::Record;
using testing::history::Recorder;

constexpr std::size_t clientCount = 8;

/// How often each fault happens.
int rounds() {
  const char* const given = std::getenv("LOCKKEEPER_ROUNDS");
  return given != nullptr ? std::stoi(given) : 1;
}

/// Processes that use a store, and what they and their faults have written.
class HistoryClients {
 public:
  HistoryClients(const FaultyStore& store, unsigned seed) : store_(store), random_(seed) {
    std::filesystem::create_directory(folder_ / "values");
    for (std::size_t index = 0; index < clientCount; ++index) clients_.push_back(started());
  }

  /// Returns when all of them use the store.
  void awaitBegin() const {
    for (const Client& each : clients_) {
      EXPECT_TRUE(waitUntil([&] { return std::filesystem::exists(folder_ / each.name); })) << "it has begun";
    }
  }

  /// Where the store serves waiters in their order: sees who waits, before anything happens to the store.
  void watchQueues() {
    if (store_.queues) queues_.watch(store_.queues, 3s);
  }

  /// Stops one for up to a lease and a half.
  void pauseOne() {
    const Client& chosen = *any();
    tell(Phase::paused, chosen);
    chosen.process.pause();
    std::this_thread::sleep_for(std::chrono::milliseconds{below(3000)});
    chosen.process.resume();
    tell(Phase::resumed, chosen);
  }

  /// Kills one, and starts another one.
  void killOne() {
    const auto chosen = any();
    tell(Phase::died, *chosen);
    chosen->process.signal(SIGKILL);
    EXPECT_EQ(chosen->process.waitFor(20s), 128 + SIGKILL);
    clients_.erase(chosen);
    clients_.push_back(started());
  }

  /// Lets all of them come to their end.
  void end() {
    awaitBegin();
    for (const Client& each : clients_) each.process.signal(SIGTERM);
    for (Client& each : clients_) EXPECT_EQ(each.process.waitFor(60s), 0) << each.name;
    clients_.clear();
  }

  /// Notes the keys that cannot be had although all leases are over.
  void findLeaks() {
    for (const char* const key : {historyKeys[0], historyKeys[1], historyKeys[2], pool}) {
      const Finished taken = runToEnd({LOCKKEEPER_COMMAND, "run", "--store", store_.uri("end"), "--wait",
                                       "15s", "--ttl", "2s", key, "--", "true"});
      if (taken.exitCode != 0) faults_.record({.phase = Phase::end, .key = key});
      EXPECT_TRUE(taken.exitCode == 0 || taken.exitCode == 75) << taken.errors;
    }
    faults_.record({.phase = Phase::end});
  }

  /// The history: all lines, with those of the faults last, since a process that has died says no more.
  std::filesystem::path written() const {
    const bool fifo = store_.queues != nullptr;
    std::string all =
        toJson(testing::history::StorePromises{.fences = store_.fences, .fifo = fifo}) + "\n" + policyLine();
    std::string lines;
    std::string disturbance;
    std::string seen;
    for (std::size_t number = 1; number <= started_; ++number) {
      const std::string own = readFile(folder_ / nameOf(number));
      lines += own;
      seen += queues_.withQueued(nameOf(number), own);
      if (disturbance.empty()) disturbance = queues_.disturbance(own);
    }
    if (fifo) {
      std::cout << "order: " << (disturbance.empty() ? "judged" : "not judged, " + disturbance) << std::endl;
      EXPECT_GT(seen.size(), lines.size()) << "nobody was seen in a queue";
    }
    all += disturbance.empty() ? seen : lines;
    writeFile(folder_ / "history.jsonl", all + readFile(folder_ / "faults"));
    return folder_ / "history.jsonl";
  }

 private:
  static std::string policyLine() {
    const RatePolicy& policy = historyPolicy();
    return testing::history::JsonLine()
               .text("policy", policy.name())
               .text("rate", std::to_string(policy.options().rate.count) + "/s")
               .number("burst", policy.options().burst)
               .end() +
           "\n";
  }

  struct Client {
    std::string name;
    Process process;
  };

  static std::string nameOf(std::size_t number) { return "p" + std::to_string(number); }
  int below(int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(random_); }
  std::list<Client>::iterator any() {
    return std::next(clients_.begin(), below(static_cast<int>(clients_.size())));
  }
  void tell(Phase phase, const Client& client) { faults_.record({.phase = phase, .process = client.name}); }

  Client started() {
    const std::string name = nameOf(++started_);
    return {name, Process({HISTORY_CLIENT, store_.uri(name), folder_ / name, name, std::to_string(random_()),
                           folder_ / "values"})};
  }

  const FaultyStore& store_;
  QueueWatch queues_;
  std::mt19937 random_;
  const TempFolder folder_;
  std::size_t started_ = 0;
  std::list<Client> clients_;
  Recorder faults_{
      [journal = Journal(folder_ / "faults")](const Record& each) { journal.add(toJson(each)); }};
};

class RealHistories : public ::testing::TestWithParam<StoreKind> {};

TEST_P(RealHistories, BreakNoRule) {
  const unsigned seed = chosenSeed();
  std::cout << "LOCKKEEPER_SEED=" << seed << std::endl;
  std::mt19937 random(seed);
  FaultyStore store = GetParam().start();
  HistoryClients clients(store, seed);
  clients.awaitBegin();
  clients.watchQueues();
  std::vector<StoreFault> faults = std::move(store.faults);
  faults.push_back({.name = "client paused", .begin = [&] { clients.pauseOne(); }});
  faults.push_back({.name = "client killed", .begin = [&] { clients.killOne(); }});
  std::map<std::string, int> hits;
  for (int round = 0; round < rounds(); ++round) {
    std::shuffle(faults.begin(), faults.end(), random);
    for (const StoreFault& each : faults) {
      std::this_thread::sleep_for(500ms);
      each.begin();
      std::this_thread::sleep_for(each.length);
      hits[each.name] += each.hit();
      each.end();
    }
  }
  clients.end();
  clients.findLeaks();
  std::string names;
  for (const StoreFault& each : faults) {
    EXPECT_GT(hits[each.name], 0) << each.name << " has hit nobody";
    names += (names.empty() ? "" : ", ") + each.name;
  }
  std::cout << "faults: " << names << std::endl;
  const Finished checked = runToEnd({LOCKKEEPER_COMMAND, "check", clients.written()});
  std::cout << checked.output;
  EXPECT_EQ(checked.exitCode, 0) << checked.output << checked.errors;
}

INSTANTIATE_TEST_SUITE_P(On, RealHistories, ::testing::ValuesIn(storeKinds().begin(), storeKinds().end()),
                         [](const auto& store) { return std::string(store.param.name); });

}  // namespace
}  // namespace lockkeeper::test
