// The C library's threads, mutexes, condition variables and futexes, for the threads of a simulation. Any
// other thread gets the real ones.
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <limits>
#include <map>

#include "simulation/machine/clocks.h"
#include "simulation/machine/real_calls.h"
#include "simulation/machine/scheduler.h"

using lockkeeper::simulation::Scheduler;
using lockkeeper::simulation::Time;
using lockkeeper::simulation::untilOf;

namespace {

constexpr std::size_t everybody = std::numeric_limits<std::size_t>::max();

int lockMutex(Scheduler& scheduler, pthread_mutex_t* mutex, Time until) {
  LOCKKEEPER_REAL(pthread_mutex_trylock);
  // The real one: it knows of owners and recursion, and is free whenever nobody in the simulation has it.
  for (;;) {
    const int result = real(mutex);
    if (result != EBUSY) return result;
    if (!scheduler.wait(mutex, until)) return ETIMEDOUT;
  }
}

int unlockMutex(Scheduler& scheduler, pthread_mutex_t* mutex) {
  LOCKKEEPER_REAL(pthread_mutex_unlock);
  const int result = real(mutex);
  scheduler.wake(mutex, everybody);
  return result;
}

int waitForCondition(Scheduler& scheduler, pthread_cond_t* condition, pthread_mutex_t* mutex, Time until) {
  unlockMutex(scheduler, mutex);
  const bool woken = scheduler.wait(condition, until);
  lockMutex(scheduler, mutex, lockkeeper::simulation::never);
  return woken ? 0 : ETIMEDOUT;
}

// The clocks of condition variables that were given one: few, and only Poco's.
std::map<const pthread_cond_t*, clockid_t>& clocksOfConditions() {
  static std::map<const pthread_cond_t*, clockid_t> all;
  return all;
}

}  // namespace

extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*),
                   void* argument) {
  LOCKKEEPER_REAL(pthread_create);
  Scheduler* const scheduler = Scheduler::ofThisThread();
  return scheduler ? scheduler->startThread(thread, routine, argument)
                   : real(thread, attributes, routine, argument);
}

int pthread_join(pthread_t thread, void** result) {
  LOCKKEEPER_REAL(pthread_join);
  Scheduler* const scheduler = Scheduler::ofThisThread();
  if (!scheduler) return real(thread, result);
  void* const its = scheduler->awaitEnd(thread);
  if (result) *result = its;
  return 0;
}

int pthread_detach(pthread_t thread) {
  LOCKKEEPER_REAL(pthread_detach);
  return Scheduler::ofThisThread() != nullptr ? 0 : real(thread);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  LOCKKEEPER_REAL(pthread_mutex_lock);
  Scheduler* const scheduler = Scheduler::ofThisThread();
  if (!scheduler) return real(mutex);
  scheduler->giveWay("before it locks a mutex");
  return lockMutex(*scheduler, mutex, lockkeeper::simulation::never);
}

int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* until) {
  LOCKKEEPER_REAL(pthread_mutex_timedlock);
  Scheduler* const scheduler = Scheduler::ofThisThread();
  return scheduler ? lockMutex(*scheduler, mutex, untilOf(*scheduler, CLOCK_REALTIME, until))
                   : real(mutex, until);
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  LOCKKEEPER_REAL(pthread_mutex_unlock);
  Scheduler* const scheduler = Scheduler::ofThisThread();
  if (!scheduler) return real(mutex);
  const int result = unlockMutex(*scheduler, mutex);
  scheduler->giveWay("after it has unlocked a mutex");
  return result;
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  LOCKKEEPER_REAL(pthread_cond_wait);
  Scheduler* const scheduler = Scheduler::ofThisThread();
  return scheduler ? waitForCondition(*scheduler, condition, mutex, lockkeeper::simulation::never)
                   : real(condition, mutex);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* until) {
  LOCKKEEPER_REAL(pthread_cond_clockwait);
  Scheduler* const scheduler = Scheduler::ofThisThread();
  return scheduler ? waitForCondition(*scheduler, condition, mutex, untilOf(*scheduler, clock, until))
                   : real(condition, mutex, clock, until);
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  LOCKKEEPER_REAL(pthread_cond_timedwait);
  Scheduler* const scheduler = Scheduler::ofThisThread();
  if (!scheduler) return real(condition, mutex, until);
  const auto found = clocksOfConditions().find(condition);
  const clockid_t clock = found == clocksOfConditions().end() ? CLOCK_REALTIME : found->second;
  return waitForCondition(*scheduler, condition, mutex, untilOf(*scheduler, clock, until));
}

int pthread_cond_init(pthread_cond_t* condition, const pthread_condattr_t* attributes) {
  LOCKKEEPER_REAL(pthread_cond_init);
  if (Scheduler::ofThisThread() != nullptr && attributes != nullptr) {
    clockid_t clock = CLOCK_REALTIME;
    pthread_condattr_getclock(attributes, &clock);
    clocksOfConditions()[condition] = clock;
  }
  return real(condition, attributes);
}

int pthread_cond_destroy(pthread_cond_t* condition) {
  LOCKKEEPER_REAL(pthread_cond_destroy);
  if (Scheduler::ofThisThread() != nullptr) clocksOfConditions().erase(condition);
  return real(condition);
}

int pthread_cond_signal(pthread_cond_t* condition) {
  LOCKKEEPER_REAL(pthread_cond_signal);
  Scheduler* const scheduler = Scheduler::ofThisThread();
  if (!scheduler) return real(condition);
  scheduler->wake(condition, 1);
  scheduler->giveWay("after it has woken somebody up");
  return 0;
}

int pthread_cond_broadcast(pthread_cond_t* condition) {
  LOCKKEEPER_REAL(pthread_cond_broadcast);
  Scheduler* const scheduler = Scheduler::ofThisThread();
  if (!scheduler) return real(condition);
  scheduler->wake(condition, everybody);
  scheduler->giveWay("after it has woken somebody up");
  return 0;
}

int sched_yield() {
  LOCKKEEPER_REAL(sched_yield);
  Scheduler* const scheduler = Scheduler::ofThisThread();
  if (!scheduler) return real();
  // Who spins waits for another thread: some time has to pass.
  scheduler->wait(&real, scheduler->now() + lockkeeper::simulation::microsecond);
  return 0;
}

// std::atomic::wait, std::stop_token and the guards of static variables wait in this way. Arguments that were
// not given are read, too.
__attribute__((no_sanitize("address"))) long syscall(long number, ...) {
  LOCKKEEPER_REAL(syscall);
  va_list arguments;
  va_start(arguments, number);
  long each[6];
  for (long& argument : each) argument = va_arg(arguments, long);
  va_end(arguments);
  Scheduler* const scheduler = number == SYS_futex ? Scheduler::ofThisThread() : nullptr;
  if (!scheduler) return real(number, each[0], each[1], each[2], each[3], each[4], each[5]);
  int* const word = reinterpret_cast<int*>(each[0]);
  const auto* const timeout = reinterpret_cast<const timespec*>(each[3]);
  switch (each[1] & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET: {
      if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != static_cast<int>(each[2])) {
        errno = EAGAIN;
        return -1;
      }
      const bool absolute = (each[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
      const clockid_t clock = (each[1] & FUTEX_CLOCK_REALTIME) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
      const Time until = !timeout   ? lockkeeper::simulation::never
                         : absolute ? untilOf(*scheduler, clock, timeout)
                                    : scheduler->after(lockkeeper::simulation::lengthOf(timeout));
      if (scheduler->wait(word, until)) return 0;
      errno = ETIMEDOUT;
      return -1;
    }
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET: {
      const auto woken = scheduler->wake(word, static_cast<std::size_t>(static_cast<int>(each[2])));
      scheduler->giveWay("after it has woken somebody up");
      return static_cast<long>(woken);
    }
    default:
      return real(number, each[0], each[1], each[2], each[3], each[4], each[5]);
  }
}

}  // extern "C"
