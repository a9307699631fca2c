#include "simulation/machine/scheduler.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
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
// A history takes some thousand.
constexpr std::uint64_t mostSwitches = 2'000'000;

thread_local Scheduler* ownScheduler = nullptr;

// Fibers of former runs. They serve again, since to start a thread takes longer than many a history.
std::vector<std::unique_ptr<Fiber>>& idleFibers() {
  static std::vector<std::unique_ptr<Fiber>> all;
  return all;
}

std::unique_ptr<Fiber> takeFiber() {
  LOCKKEEPER_REAL(pthread_create);
  if (idleFibers().empty()) {
    return std::make_unique<Fiber>(__interceptor_pthread_create != nullptr ? &__interceptor_pthread_create
                                                                           : real);
  }
  std::unique_ptr<Fiber> taken = std::move(idleFibers().back());
  idleFibers().pop_back();
  return taken;
}

template <std::size_t... Kind>
std::array<Occasions, eventKinds> occasionsOf(const Choice& choice, std::index_sequence<Kind...> /*all*/) {
  return {Occasions(choice.seed, static_cast<Event>(Kind), choice.kept)...};
}

}  // namespace

struct Scheduler::Thread {
  Scheduler* scheduler = nullptr;
  std::string name;
  std::uint64_t number = 0;
  int process = 0;
  std::unique_ptr<Fiber> fiber;
  void* (*routine)(void*) = nullptr;
  void* argument = nullptr;
  void* result = nullptr;
  const void* waitsFor = nullptr;  // null: it can go on
  Time until = never;
  bool woken = false;
  bool ended = false;
};

Scheduler* Scheduler::ofThisThread() noexcept { return ownScheduler; }

Scheduler::Scheduler(const Choice& choice)
    : switching_(choice.switching),
      traced_(choice.traced),
      chance_(choice.seed, 1),
      bytes_(choice.seed, 2),
      occasions_(occasionsOf(choice, std::make_index_sequence<eventKinds>())) {
  processes_.push_back(std::make_unique<Process>(Process{.name = "controller"}));
}

Scheduler::~Scheduler() = default;

void Scheduler::run(const std::function<void()>& body) {
  struct Call {
    Scheduler& scheduler;
    const std::function<void()>& body;
  } call{*this, body};
  const auto routine = [](void* given) -> void* {
    const Call& its = *static_cast<Call*>(given);
    try {
      its.body();
    } catch (...) {
      its.scheduler.failure_ = std::current_exception();
    }
    return nullptr;
  };
  running_ = &addThread(routine, &call);
  caller_.changeTo(*running_->fiber);
  if (failure_) {
    // Where its threads stand, nobody can go on, and nobody can begin anew: they keep their stacks.
    for (const auto& each : threads_) (void)each->fiber.release();
    std::rethrow_exception(failure_);
  }
  for (const auto& each : threads_) idleFibers().push_back(std::move(each->fiber));
}

void Scheduler::at(Time time, std::function<void()> event) {
  plans_.push_back({time, ++plansMade_, std::move(event)});
  std::push_heap(plans_.begin(), plans_.end(), std::greater<>());
}

int Scheduler::addProcess(Process process) {
  processes_.push_back(std::make_unique<Process>(std::move(process)));
  return static_cast<int>(processes_.size()) - 1;
}

int Scheduler::thisProcess() const noexcept { return running_->process; }

void Scheduler::enterProcess(int id) noexcept { running_->process = id; }

void Scheduler::nameThread(std::string name) { running_->name = std::move(name); }

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
  return thread.waitsFor == nullptr &&
         processes_[static_cast<std::size_t>(thread.process)]->pausedUntil <= now_;
}

std::uint16_t& Scheduler::waitersFor(const void* what) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(what);
  return waiters_[(address >> 3U ^ address >> 11U) % waiters_.size()];
}

void Scheduler::endWait(Thread& thread, bool woken) noexcept {
  --waitersFor(thread.waitsFor);
  thread.waitsFor = nullptr;
  thread.woken = woken;
}

void Scheduler::letTimePass(Time until) {
  now_ = std::max(now_, until);
  while (!plans_.empty() && plans_.front().time <= now_) {
    std::pop_heap(plans_.begin(), plans_.end(), std::greater<>());
    const Planned due = std::move(plans_.back());
    plans_.pop_back();
    note(due.number);
    inEvent_ = true;
    due.call();
    inEvent_ = false;
  }
  if (now_ < firstTimeout_) return;
  firstTimeout_ = never;
  for (Thread* const each : alive_) {
    if (each->waitsFor == nullptr) continue;
    if (each->until <= now_) {
      endWait(*each, false);
    } else {
      firstTimeout_ = std::min(firstTimeout_, each->until);
    }
  }
}

Scheduler::Thread& Scheduler::chooseNext() {
  if (switches_ > mostSwitches) fail("does not end: its threads go on and on");
  letTimePass(now_ + static_cast<Time>(chance_.upTo(1999)));
  for (;;) {
    chosenFrom_.clear();
    for (Thread* const each : alive_) {
      if (canRun(*each)) chosenFrom_.push_back(each);
    }
    if (!chosenFrom_.empty()) return *chosenFrom_[chance_.upTo(chosenFrom_.size() - 1)];
    Time next = plans_.empty() ? never : plans_.front().time;
    for (const Thread* const each : alive_) {
      const Time resumed = processes_[static_cast<std::size_t>(each->process)]->pausedUntil;
      next = std::min(next, each->waitsFor == nullptr ? resumed : each->until);
    }
    if (next == never) fail("stands still: " + whatTheyWaitFor());
    letTimePass(next);
  }
}

std::string Scheduler::whatTheyWaitFor() const {
  std::string all = "all threads wait without an end:";
  for (const Thread* const each : alive_) all += " " + each->name + ",";
  all.pop_back();
  return all;
}

void Scheduler::fail(const std::string& what) {
  failure_ = std::make_exception_ptr(Unending(what));
  ownScheduler = nullptr;
  Fiber::leaveFor(caller_);
}

void Scheduler::chosen(Thread& next) {
  ++switches_;
  note(next.number);
  running_ = &next;
}

void Scheduler::switchTo(Thread& next) {
  Thread& self = *running_;
  if (&next == &self) return;
  chosen(next);
  self.fiber->changeTo(*next.fiber);
}

void Scheduler::giveWay(const char* where) {
  if (inEvent_) return;  // of no thread
  now_ += stepLength;
  if (uninterrupted_ == running_ || !happens(Event::preemption, switching_)) return;
  Thread& next = chooseNext();
  if (&next != running_) trace([&] { return std::string("is interrupted ") + where; });
  switchTo(next);
}

bool Scheduler::wait(const void* what, Time until) {
  Thread& self = *running_;
  self.waitsFor = what;
  self.until = until;
  self.woken = false;
  ++waitersFor(what);
  firstTimeout_ = std::min(firstTimeout_, until);
  switchTo(chooseNext());
  return self.woken;
}

std::size_t Scheduler::wake(const void* what, std::size_t most) {
  if (waitersFor(what) == 0) return 0;
  chosenFrom_.clear();
  for (Thread* const each : alive_) {
    if (each->waitsFor == what) chosenFrom_.push_back(each);
  }
  std::size_t done = 0;
  for (; done < most && !chosenFrom_.empty(); ++done) {
    const std::size_t one = chance_.upTo(chosenFrom_.size() - 1);
    endWait(*chosenFrom_[one], true);
    chosenFrom_.erase(chosenFrom_.begin() + static_cast<std::ptrdiff_t>(one));
  }
  return done;
}

void Scheduler::runThread(void* given) {
  Thread& self = *static_cast<Thread*>(given);
  ownScheduler = self.scheduler;
  self.result = self.routine(self.argument);
  self.scheduler->finish(self);
}

void Scheduler::finish(Thread& thread) {
  thread.ended = true;
  std::erase(alive_, &thread);
  wake(&thread, std::numeric_limits<std::size_t>::max());
  // Without threads there is nothing to choose.
  Thread* const next = alive_.empty() ? nullptr : &chooseNext();
  ownScheduler = nullptr;
  if (!next) Fiber::leaveFor(caller_);
  chosen(*next);
  Fiber::leaveFor(*next->fiber);
}

Scheduler::Thread& Scheduler::addThread(void* (*routine)(void*), void* argument) {
  auto made = std::make_unique<Thread>();
  made->scheduler = this;
  made->number = threads_.size();
  made->process = running_ ? running_->process : 0;
  made->name =
      process(made->process).name + (made->number == 0 ? "" : " thread " + std::to_string(made->number));
  made->routine = routine;
  made->argument = argument;
  made->fiber = takeFiber();
  made->fiber->begin(&Scheduler::runThread, made.get());
  alive_.push_back(made.get());
  threads_.push_back(std::move(made));
  return *threads_.back();
}

int Scheduler::startThread(pthread_t* thread, void* (*routine)(void*), void* argument) {
  *thread = addThread(routine, argument).fiber->thread();
  giveWay("after it has started a thread");
  return 0;
}

void* Scheduler::awaitEnd(pthread_t thread) {
  const auto found = std::find_if(threads_.begin(), threads_.end(), [&](const auto& each) {
    return pthread_equal(each->fiber->thread(), thread) != 0;
  });
  Thread& awaited = **found;
  while (!awaited.ended) wait(&awaited, never);
  return awaited.result;
}

void Scheduler::addToTrace(const std::string& whom, const std::string& what) {
  char time[32];
  std::snprintf(time, sizeof time, "%12.6f s  ", static_cast<double>(now_ - 1000 * second) / 1e9);
  lines_.push_back(time + (whom.empty() ? running_->name : whom) + ": " + what);
}

}  // namespace lockkeeper::simulation
