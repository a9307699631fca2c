#include "contest.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "line.h"
#include "one_processor.h"
#include "process.h"
#include "processor_time.h"

namespace lockkeeper::bench {

namespace {

constexpr int rounds = 9;
// The cheapest of a round counts: the others were disturbed by what else the machine does.
constexpr int tries = 3;
constexpr std::chrono::milliseconds length{60};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double medianOf(const std::vector<Cost>& costs, double Cost::*part) {
  std::vector<double> values;
  for (const Cost& each : costs) values.push_back(each.*part);
  return median(std::move(values));
}

// Of each round by itself: what the machine did meanwhile met both.
double ratioOf(const std::vector<Cost>& ours, const std::vector<Cost>& beside, double Cost::*part) {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < ours.size(); ++round)
    ratios.push_back(ours[round].*part / beside[round].*part);
  return median(std::move(ratios));
}

std::string inWords(int threads) { return std::to_string(threads) + (threads == 1 ? " thread" : " threads"); }

}  // namespace

Way pairs(std::string name, LockManager& locks) {
  return {std::move(name), [&locks](int thread) {
            return [&locks, key = "order:" + std::to_string(thread)] {
              auto held = locks.tryLock(key);
              if (!held || held->release() != ReleaseResult::released)
                throw std::runtime_error("the lock was not taken");
            };
          }};
}

Contest::Contest(std::string title, std::string servers, int count, char** arguments)
    : title_(std::move(title)), servers_(std::move(servers)) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (count == 2) only_ = arguments[1];
  if (count != 4 || arguments[1] != std::string("--profile")) return;
  only_ = arguments[2];
  profile_ = arguments[3];
}

void Contest::measure(int threads, const std::vector<Way>& ways, const std::vector<Goal>& goals) {
  const std::string name = title_ + ", " + inWords(threads);
  std::optional<OneProcessor> shared;
  if (threads == 1) shared.emplace();
  if (!profile_.empty()) {
    for (const Way& each : ways) {
      const std::string line = name + ", " + each.name;
      if (only_ == line || only_.starts_with(line + ":")) profile(each, threads);
    }
    return;
  }
  if (!name.starts_with(only_) && !only_.starts_with(name + ",")) return;
  Costs costs;
  for (int round = 0; round < rounds; ++round) {
    for (int attempt = 0; attempt < tries; ++attempt) {
      for (const Way& each : ways) {
        const Cost cost = run(each, threads, [] { std::this_thread::sleep_for(length); });
        auto& mine = costs[each.name];
        if (attempt == 0)
          mine.push_back(cost);
        else if (cost.client + cost.server < mine.back().client + mine.back().server)
          mine.back() = cost;
      }
    }
  }
  for (const Way& each : ways) {
    const auto& mine = costs.at(each.name);
    std::printf("cost | %s | %s | %s | %.3f | %.3f | %.3f\n", title_.c_str(), inWords(threads).c_str(),
                each.name.c_str(), medianOf(mine, &Cost::client), medianOf(mine, &Cost::server),
                medianOf(mine, &Cost::time));
  }
  for (const Goal& each : goals) print(name, costs, each);
}

Cost Contest::run(const Way& way, int threads, const std::function<void()>& meanwhile) const {
  std::atomic<bool> stop = false;
  std::atomic<long> calls = 0;
  std::barrier together(threads + 1);
  std::vector<std::jthread> running;
  for (int thread = 0; thread < threads; ++thread) {
    running.emplace_back([&, thread] {
      const auto call = way.begin(thread);
      call();
      together.arrive_and_wait();
      together.arrive_and_wait();
      long mine = 0;
      for (; !stop.load(std::memory_order_relaxed); ++mine) call();
      calls += mine;
      together.arrive_and_wait();
      together.arrive_and_wait();
    });
  }
  // All threads wait while the counters are read, and keep their connections: a server may have a process for
  // each of them.
  together.arrive_and_wait();
  const ServerTime server(servers_);
  const double client = processorTime();
  const auto began = std::chrono::steady_clock::now();
  together.arrive_and_wait();
  meanwhile();
  stop = true;
  together.arrive_and_wait();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  const double own = processorTime() - client, theirs = server.seconds();
  together.arrive_and_wait();
  const double each = 1e6 / static_cast<double>(calls);
  return {.time = took.count() * each,
          .client = own * each,
          .server = theirs * each / static_cast<double>(way.servers)};
}

void Contest::profile(const Way& way, int threads) const {
  run(way, threads, [&] {
    std::string processes = std::to_string(::getpid());
    for (const pid_t server : serversOf(servers_)) processes += "," + std::to_string(server);
    const auto perf =
        test::runToEnd({"perf", "record", "--event", "cpu-clock", "--freq", "997", "--call-graph",
                        "dwarf,16384", "--pid", processes, "--output", profile_, "--", "sleep", "5"});
    if (perf.exitCode != 0) throw std::runtime_error("perf: " + perf.errors);
  });
}

void Contest::print(const std::string& name, const Costs& costs, const Goal& goal) const {
  const auto costOf = [&](const std::string& way, double Cost::*part) {
    return goal.beside.empty() ? medianOf(costs.at(way), part)
                               : ratioOf(costs.at(way), costs.at(goal.beside), part);
  };
  const char* const unit = goal.beside.empty() ? " µs" : "x";
  const auto line = [&](const char* what, std::optional<double> wanted, double Cost::*part,
                        bool perSecond = false) {
    if (!wanted) return;
    const bool compared = *wanted != shown;
    const auto valueOf = [&](const std::string& way) {
      return perSecond ? 1 / costOf(way, part) : costOf(way, part);
    };
    const auto passes = [&](double value) {
      return !compared || (perSecond ? value >= *wanted : value <= *wanted);
    };
    const double value = valueOf(goal.ours);
    Line made{.name = name + ", " + goal.ours + ": " + what,
              .floor = goal.beside,
              .wanted = compared ? (perSecond ? "at least " : "at most ") + figure(*wanted, unit) : "",
              .measured = figure(value, unit),
              .passed = passes(value)};
    if (compared && !goal.bare.empty()) {
      const std::string& best =
          *std::ranges::min_element(goal.bare, {}, [&](const auto& way) { return costOf(way, part); });
      made.bare = {.way = best, .measured = figure(valueOf(best), unit), .passed = passes(valueOf(best))};
    }
    bench::print(made);
  };
  line("server", goal.server, &Cost::server);
  line("client", goal.client, &Cost::client);
  line("time", goal.time, &Cost::time);
  line("calls a second", goal.perSecond, &Cost::time, true);
}

}  // namespace lockkeeper::bench
