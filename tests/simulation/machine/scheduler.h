#pragma once

#include <pthread.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <vector>

namespace lockkeeper::simulation {

/// Nanoseconds of simulated time since the start of a run.
using Time = std::int64_t;
inline constexpr Time never = std::numeric_limits<Time>::max();
inline constexpr Time microsecond = 1'000;
inline constexpr Time millisecond = 1'000'000;
inline constexpr Time second = 1'000'000'000;

/// How the threads of a run are chosen: a new seed gives another order of events, the same seed the same one.
struct Choice {
  std::uint64_t seed = 1;
  /// The probability that a thread which could go on gives way to another one.
  double switching = 0.1;
};

/// A simulated computer: its own clocks, which may drift and jump, and threads that may stand still together.
struct Process {
  std::string name;
  double drift = 0;  ///< Of its boot clock: 1e-4 gains 100 µs in a second.
  Time bootOffset = 0;
  Time wallOffset = 0;  ///< Beyond the simulated time; an event may change it.
  Time pausedUntil = 0;
};

/// Runs threads one at a time, and lets time pass only when none of them can go on. While a run lasts, the C
/// library's threads, mutexes, condition variables, clocks and sockets are those of the run for every thread
/// that it has started (interpose_*.cpp). The thread that calls run() is its first one.
class Scheduler {
 public:
  /// The present run's, or null for a thread that is not part of one.
  static Scheduler* ofThisThread() noexcept;

  explicit Scheduler(Choice choice);
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  ~Scheduler();

  /// Calls `body` as the first thread of process 0. It has to join what it starts. Throws what `body` throws.
  void run(const std::function<void()>& body);

  /// @{ For the parts of a simulation; all but `at` by a thread of the run.
  Time now() const noexcept { return now_; }
  /// Calls `event` at `time`; it must not block.
  void at(Time time, std::function<void()> event);
  std::mt19937_64& random() noexcept { return random_; }
  /// A number in [0, bound].
  std::uint64_t upTo(std::uint64_t bound);
  bool happens(double probability);

  /// Whether giveWay() does nothing for this thread: it observes what several others believe at one moment.
  void setUninterrupted(bool is) noexcept { uninterrupted_ = is ? running_ : nullptr; }

  int addProcess(Process process);
  Process& process(int id) { return *processes_[static_cast<std::size_t>(id)]; }
  int thisProcess() const noexcept;
  /// What this thread starts and asks from now on belongs to process `id`.
  void enterProcess(int id) noexcept;
  Time bootTime(int process) const noexcept;
  Time wallTime(int process) const noexcept;
  /// The simulated time at which the boot clock of this thread's process has gone on by `length`.
  Time after(Time length) const noexcept;

  /// Perhaps lets another thread run.
  void giveWay();
  /// Blocks until wake() is called for `what`, or `until` has come: then returns false.
  bool wait(const void* what, Time until);
  /// Ends wait() of up to `most` threads, in an order that is chosen.
  std::size_t wake(const void* what, std::size_t most);

  /// A number for what has happened so far: the same for the same seed.
  std::uint64_t traceHash() const noexcept { return hash_; }
  void note(std::uint64_t what) noexcept { hash_ = (hash_ ^ what) * 1099511628211U; }
  std::uint64_t switches() const noexcept { return switches_; }
  /// @}

  /// @{ For interpose_threads.cpp.
  int startThread(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*),
                  void* argument);
  /// Blocks until that thread has ended; false when it is none of the run.
  bool awaitEnd(pthread_t thread);
  /// @}

 private:
  struct Thread;
  struct Event {
    Time time;
    std::uint64_t number;
    std::shared_ptr<std::function<void()>> call;
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };

  static void* runThread(void* thread);
  void finish(Thread& thread);
  bool canRun(const Thread& thread) const noexcept;
  void letTimePass(Time until);
  Thread& chooseNext();
  /// Lets `next` run; the caller stands still until it is chosen itself, unless it has ended.
  void switchTo(Thread& next);
  [[noreturn]] void standstill() const;

  const Choice choice_;
  std::mt19937_64 random_;
  Time now_ = 1000 * second;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Thread*> ready_;
  Thread* running_ = nullptr;
  Thread* uninterrupted_ = nullptr;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t eventsMade_ = 0;
  std::uint64_t hash_ = 14695981039346656037U;
  std::uint64_t switches_ = 0;
};

/// As long as it lives, no other thread runs unless this one has to wait for it.
class Uninterrupted {
 public:
  explicit Uninterrupted(Scheduler& scheduler) : scheduler_(scheduler) { scheduler_.setUninterrupted(true); }
  Uninterrupted(const Uninterrupted&) = delete;
  Uninterrupted& operator=(const Uninterrupted&) = delete;
  ~Uninterrupted() { scheduler_.setUninterrupted(false); }

 private:
  Scheduler& scheduler_;
};

}  // namespace lockkeeper::simulation
