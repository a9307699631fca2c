#include "simulation/machine/scheduler.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>

#include "simulation/machine/real_calls.h"

// The address sanitizer's own, which has to know of each thread; null in a build without it.
extern "C" int __interceptor_pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*),
                                            void*)  // NOLINT
    __attribute__((weak));

namespace lockkeeper::simulation {
namespace {

// What a thread takes from one call of the C library to the next: who spins until a time comes sees it come.
constexpr Time stepLength = 300;

// Where one thread of a run stands still: the real futex, past the one that is simulated.
class Gate {
 public:
  void pass() {
    while (open_.exchange(0) == 0) futex(FUTEX_WAIT_PRIVATE, 0);
  }
  void open() {
    open_.store(1);
    futex(FUTEX_WAKE_PRIVATE, 1);
  }

 private:
  void futex(int operation, int value) {
    LOCKKEEPER_REAL(syscall);
    real(SYS_futex, &open_, operation, value, nullptr, nullptr, 0);
  }
  std::atomic<int> open_{0};
};

}  // namespace

struct Scheduler::Thread {
  Scheduler* scheduler = nullptr;
  int number = 0;
  int process = 0;
  pthread_t handle{};
  void* (*routine)(void*) = nullptr;
  void* argument = nullptr;
  const void* waitsFor = nullptr;  // null: it can go on
  Time until = never;
  bool woken = false;
  bool ended = false;
  Gate gate;
};

namespace {

thread_local Scheduler* ownScheduler = nullptr;

}  // namespace

Scheduler* Scheduler::ofThisThread() noexcept { return ownScheduler; }

Scheduler::Scheduler(Choice choice) : choice_(choice), random_(choice.seed) {
  processes_.push_back(std::make_unique<Process>(Process{.name = "controller"}));
}

Scheduler::~Scheduler() = default;

void Scheduler::run(const std::function<void()>& body) {
  threads_.push_back(std::make_unique<Thread>());
  Thread& first = *threads_.back();
  first.scheduler = this;
  first.handle = pthread_self();
  running_ = &first;
  ownScheduler = this;
  std::exception_ptr failure;
  try {
    body();
  } catch (...) {
    failure = std::current_exception();
  }
  // Detached threads may still be on their way to their end.
  while (std::any_of(threads_.begin() + 1, threads_.end(), [](const auto& each) { return !each->ended; })) {
    wait(&threads_, never);
  }
  ownScheduler = nullptr;
  if (failure) std::rethrow_exception(failure);
}

void Scheduler::at(Time time, std::function<void()> event) {
  events_.push({time, ++eventsMade_, std::make_shared<std::function<void()>>(std::move(event))});
}

std::uint64_t Scheduler::upTo(std::uint64_t bound) {
  return bound == std::numeric_limits<std::uint64_t>::max() ? random_() : random_() % (bound + 1);
}

bool Scheduler::happens(double probability) {
  return static_cast<double>(random_() >> 11U) < probability * 9007199254740992.0;
}

int Scheduler::addProcess(Process process) {
  processes_.push_back(std::make_unique<Process>(std::move(process)));
  return static_cast<int>(processes_.size()) - 1;
}

int Scheduler::thisProcess() const noexcept { return running_->process; }

void Scheduler::enterProcess(int id) noexcept { running_->process = id; }

Time Scheduler::bootTime(int process) const noexcept {
  const Process& its = *processes_[static_cast<std::size_t>(process)];
  return now_ + static_cast<Time>(static_cast<double>(now_) * its.drift) + its.bootOffset;
}

Time Scheduler::wallTime(int process) const noexcept {
  return 1'800'000'000 * second + now_ + processes_[static_cast<std::size_t>(process)]->wallOffset;
}

Time Scheduler::after(Time length) const noexcept {
  if (length <= 0) return now_;
  if (length > never - 2 * now_ - second) return never;
  const Process& its = *processes_[static_cast<std::size_t>(running_->process)];
  return now_ + static_cast<Time>(static_cast<double>(length) / (1 + its.drift)) + 1;
}

bool Scheduler::canRun(const Thread& thread) const noexcept {
  return !thread.ended && thread.waitsFor == nullptr &&
         processes_[static_cast<std::size_t>(thread.process)]->pausedUntil <= now_;
}

void Scheduler::letTimePass(Time until) {
  now_ = std::max(now_, until);
  while (!events_.empty() && events_.top().time <= now_) {
    const Event event = events_.top();
    events_.pop();
    note(event.number);
    (*event.call)();
  }
  for (const auto& each : threads_) {
    if (each->waitsFor != nullptr && each->until <= now_) {
      each->waitsFor = nullptr;
      each->woken = false;
    }
  }
}

Scheduler::Thread& Scheduler::chooseNext() {
  letTimePass(now_ + static_cast<Time>(random_() % 2000));
  for (;;) {
    ready_.clear();
    for (const auto& each : threads_) {
      if (canRun(*each)) ready_.push_back(each.get());
    }
    if (!ready_.empty()) return *ready_[random_() % ready_.size()];
    Time next = events_.empty() ? never : events_.top().time;
    for (const auto& each : threads_) {
      if (each->ended) continue;
      const Time resumed = processes_[static_cast<std::size_t>(each->process)]->pausedUntil;
      next = std::min(next, each->waitsFor == nullptr ? resumed : each->until);
    }
    if (next == never) standstill();
    letTimePass(next);
  }
}

void Scheduler::standstill() const {
  std::fprintf(stderr, "the simulation stands still: all its threads wait for each other, without an end\n");
  for (const auto& each : threads_) {
    if (!each->ended) {
      std::fprintf(stderr, "  thread %d of %s waits for %p\n", each->number,
                   processes_[static_cast<std::size_t>(each->process)]->name.c_str(), each->waitsFor);
    }
  }
  std::abort();
}

void Scheduler::switchTo(Thread& next) {
  Thread& self = *running_;
  if (&next == &self) return;
  ++switches_;
  note(static_cast<std::uint64_t>(next.number));
  running_ = &next;
  const bool stays = !self.ended;
  next.gate.open();
  if (stays) self.gate.pass();
}

void Scheduler::giveWay() {
  now_ += stepLength;
  if (uninterrupted_ == running_ || !happens(choice_.switching)) return;
  switchTo(chooseNext());
}

bool Scheduler::wait(const void* what, Time until) {
  Thread& self = *running_;
  self.waitsFor = what;
  self.until = until;
  self.woken = false;
  switchTo(chooseNext());
  return self.woken;
}

std::size_t Scheduler::wake(const void* what, std::size_t most) {
  ready_.clear();
  for (const auto& each : threads_) {
    if (each->waitsFor == what) ready_.push_back(each.get());
  }
  std::size_t done = 0;
  for (; done < most && !ready_.empty(); ++done) {
    const std::size_t chosen = random_() % ready_.size();
    ready_[chosen]->waitsFor = nullptr;
    ready_[chosen]->woken = true;
    ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(chosen));
  }
  return done;
}

void* Scheduler::runThread(void* given) {
  Thread& self = *static_cast<Thread*>(given);
  self.gate.pass();
  ownScheduler = self.scheduler;
  void* const result = self.routine(self.argument);
  self.scheduler->finish(self);
  return result;
}

void Scheduler::finish(Thread& thread) {
  thread.ended = true;
  ownScheduler = nullptr;
  wake(&thread, std::numeric_limits<std::size_t>::max());
  wake(&threads_, std::numeric_limits<std::size_t>::max());
  switchTo(chooseNext());
}

int Scheduler::startThread(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*),
                           void* argument) {
  LOCKKEEPER_REAL(pthread_create);
  auto* const create = __interceptor_pthread_create != nullptr ? &__interceptor_pthread_create : real;
  auto made = std::make_unique<Thread>();
  made->scheduler = this;
  made->number = static_cast<int>(threads_.size());
  made->process = running_->process;
  made->routine = routine;
  made->argument = argument;
  if (const int failure = create(&made->handle, attributes, &Scheduler::runThread, made.get()); failure != 0)
    return failure;
  *thread = made->handle;
  threads_.push_back(std::move(made));
  giveWay();
  return 0;
}

bool Scheduler::awaitEnd(pthread_t thread) {
  // The last one of that handle: the C library gives those of ended threads to new ones.
  const auto found = std::find_if(threads_.rbegin(), threads_.rend(),
                                  [&](const auto& each) { return pthread_equal(each->handle, thread) != 0; });
  if (found == threads_.rend()) return false;
  Thread& awaited = **found;
  while (!awaited.ended) wait(&awaited, never);
  return true;
}

}  // namespace lockkeeper::simulation
