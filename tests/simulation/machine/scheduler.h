#pragma once

#include <pthread.h>

#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "simulation/machine/chance.h"
#include "simulation/machine/fiber.h"

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
  Kept kept{};
  bool traced = false;
};

/// A simulated computer: its own clocks, which may drift and jump, and threads that may stand still together.
struct Process {
  std::string name;
  double drift = 0;  ///< Of its boot clock: 1e-4 gains 100 µs in a second.
  Time bootOffset = 0;
  Time wallOffset = 0;  ///< Beyond the simulated time; an event may change it.
  Time pausedUntil = 0;
};

/// A run that cannot go on, or has gone on for too long. Its threads are left where they are, for ever.
class Unending : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Runs threads one at a time, and lets time pass only when none of them can go on. While a run lasts, the C
/// library's threads, mutexes, condition variables, clocks and sockets are those of the run for every thread
/// that it has started (interpose_*.cpp).
class Scheduler {
 public:
  /// The present run's, or null for a thread that is not part of one.
  static Scheduler* ofThisThread() noexcept;

  explicit Scheduler(const Choice& choice);
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  ~Scheduler();

  /// Calls `body` on the first thread, in process 0, and returns when all threads have ended. Throws what
  /// `body` throws, and Unending.
  void run(const std::function<void()>& body);

  /// @{ For the parts of a simulation; all but `at` by a thread of the run.
  Time now() const noexcept { return now_; }
  /// Calls `event` at `time`; it must not block.
  void at(Time time, std::function<void()> event);
  /// Bytes for the C library's generator.
  Chance& chance() noexcept { return bytes_; }
  /// Whether something that the history can do without happens now.
  bool happens(Event kind, double probability) { return occasions(kind).happens(probability); }
  Occasions& occasions(Event kind) noexcept { return occasions_[static_cast<std::size_t>(kind)]; }

  /// Whether giveWay() does nothing for this thread: it observes what several others believe at one moment.
  void setUninterrupted(bool is) noexcept { uninterrupted_ = is ? running_ : nullptr; }

  int addProcess(Process process);
  Process& process(int id) { return *processes_[static_cast<std::size_t>(id)]; }
  int thisProcess() const noexcept;
  /// What this thread starts and asks from now on belongs to process `id`.
  void enterProcess(int id) noexcept;
  /// How the trace calls this thread.
  void nameThread(std::string name);
  Time bootTime(int process) const noexcept;
  Time wallTime(int process) const noexcept;
  /// The simulated time at which the boot clock of this thread's process has gone on by `length`.
  Time after(Time length) const noexcept;

  /// Perhaps lets another thread run. The trace says `where` this one was.
  void giveWay(const char* where);
  /// Blocks until wake() is called for `what`, or `until` has come: then returns false.
  bool wait(const void* what, Time until);
  /// Ends wait() of up to `most` threads, in an order that is chosen.
  std::size_t wake(const void* what, std::size_t most);

  /// A number for what has happened so far: the same for the same seed.
  std::uint64_t traceHash() const noexcept { return hash_; }
  void note(std::uint64_t what) noexcept { hash_ = (hash_ ^ what) * 1099511628211U; }
  std::uint64_t switches() const noexcept { return switches_; }

  /// Adds what `describe()` returns to the trace, if there is one, as done by this thread.
  template <class Describe>
  void trace(const Describe& describe) {
    if (traced_) addToTrace({}, describe());
  }
  /// The same as done by `whom`.
  template <class Describe>
  void trace(const std::string& whom, const Describe& describe) {
    if (traced_) addToTrace(whom, describe());
  }
  const std::vector<std::string>& traceLines() const noexcept { return lines_; }
  /// @}

  /// @{ For interpose_threads.cpp.
  int startThread(pthread_t* thread, void* (*routine)(void*), void* argument);
  /// Blocks until that thread of the run has ended, and returns its result.
  void* awaitEnd(pthread_t thread);
  /// @}

 private:
  struct Thread;
  struct Planned {
    Time time;
    std::uint64_t number;
    std::function<void()> call;
    bool operator>(const Planned& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };

  static void runThread(void* thread);
  [[noreturn]] void finish(Thread& thread);
  [[noreturn]] void fail(const std::string& what);
  Thread& addThread(void* (*routine)(void*), void* argument);
  bool canRun(const Thread& thread) const noexcept;
  void letTimePass(Time until);
  void endWait(Thread& thread, bool woken) noexcept;
  Thread& chooseNext();
  /// Lets `next` run; the caller stands still until it is chosen itself.
  void switchTo(Thread& next);
  void chosen(Thread& next);
  std::string whatTheyWaitFor() const;
  void addToTrace(const std::string& whom, const std::string& what);
  std::uint16_t& waitersFor(const void* what) noexcept;

  const double switching_;
  const bool traced_;
  Chance chance_;
  Chance bytes_;
  std::array<Occasions, eventKinds> occasions_;
  Time now_ = 1000 * second;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Thread*> alive_;
  std::vector<Thread*> chosenFrom_;
  Thread* running_ = nullptr;
  Thread* uninterrupted_ = nullptr;
  bool inEvent_ = false;
  std::vector<Planned> plans_;  // a heap
  std::uint64_t plansMade_ = 0;
  Time firstTimeout_ = never;  // no thread's wait ends before it
  // By a hash of what is waited for, so that most calls of wake() need not look.
  std::array<std::uint16_t, 256> waiters_{};
  Fiber caller_;
  std::exception_ptr failure_;
  std::uint64_t hash_ = 14695981039346656037U;
  std::uint64_t switches_ = 0;
  std::vector<std::string> lines_;
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
