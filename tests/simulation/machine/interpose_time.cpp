// The C library's clocks, sleeps and random bytes, for the threads of a simulation.
#include <sys/random.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "simulation/machine/clocks.h"
#include "simulation/machine/real_calls.h"
#include "simulation/machine/scheduler.h"

using lockkeeper::simulation::clockOf;
using lockkeeper::simulation::Scheduler;
using lockkeeper::simulation::Time;

namespace {

timespec timespecOf(Time time) {
  return {time / lockkeeper::simulation::second, time % lockkeeper::simulation::second};
}

void sleepFor(Scheduler& scheduler, Time length) {
  static const char sleeping = 0;
  scheduler.wait(&sleeping, scheduler.after(length));
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) {
  LOCKKEEPER_REAL(clock_gettime);
  const Scheduler* const scheduler = Scheduler::ofThisThread();
  if (!scheduler || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID)
    return real(clock, time);
  *time = timespecOf(clockOf(*scheduler, clock));
  return 0;
}

int gettimeofday(timeval* time, void* zone) {
  LOCKKEEPER_REAL(gettimeofday);
  const Scheduler* const scheduler = Scheduler::ofThisThread();
  if (!scheduler) return real(time, zone);
  const timespec now = timespecOf(clockOf(*scheduler, CLOCK_REALTIME));
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* out) {
  LOCKKEEPER_REAL(time);
  const Scheduler* const scheduler = Scheduler::ofThisThread();
  if (!scheduler) return real(out);
  const time_t now = timespecOf(clockOf(*scheduler, CLOCK_REALTIME)).tv_sec;
  if (out) *out = now;
  return now;
}

int nanosleep(const timespec* length, timespec* rest) {
  LOCKKEEPER_REAL(nanosleep);
  Scheduler* const scheduler = Scheduler::ofThisThread();
  if (!scheduler) return real(length, rest);
  sleepFor(*scheduler, lockkeeper::simulation::lengthOf(length));
  return 0;
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* length, timespec* rest) {
  LOCKKEEPER_REAL(clock_nanosleep);
  Scheduler* const scheduler = Scheduler::ofThisThread();
  if (!scheduler) return real(clock, flags, length, rest);
  const Time asked = lockkeeper::simulation::lengthOf(length);
  sleepFor(*scheduler, (flags & TIMER_ABSTIME) != 0 ? asked - clockOf(*scheduler, clock) : asked);
  return 0;
}

ssize_t getrandom(void* out, size_t length, unsigned flags) {
  LOCKKEEPER_REAL(getrandom);
  Scheduler* const scheduler = Scheduler::ofThisThread();
  if (!scheduler) return real(out, length, flags);
  auto* const bytes = static_cast<unsigned char*>(out);
  for (size_t i = 0; i < length; ++i) bytes[i] = static_cast<unsigned char>(scheduler->chance()());
  return static_cast<ssize_t>(length);
}

}  // extern "C"
