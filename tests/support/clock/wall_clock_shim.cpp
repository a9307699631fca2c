// Preloaded into a process: its wall clock is off by so many seconds as the file WALL_CLOCK_FILE says at that
// moment, a 64-bit number in the machine's byte order. Its monotonic clock is untouched. It has no
// sanitizers, since the process has none.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace {

const volatile std::int64_t* offset = nullptr;

// From whatever asks first: other libraries' constructors may come before ours.
void load() {
  const char* const path = std::getenv("WALL_CLOCK_FILE");
  const int file = path != nullptr ? ::open(path, O_RDONLY | O_CLOEXEC) : -1;
  void* const mapped = ::mmap(nullptr, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) ::_exit(99);
  ::close(file);
  offset = static_cast<const volatile std::int64_t*>(mapped);
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  if (offset == nullptr) load();
  // Not the C library's own: its names have versions, and the process may run on an older one than the
  // machine's.
  const int result = static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += *offset;
  return result;
}

int gettimeofday(timeval* now, void*) noexcept {
  timespec precise{};
  const int result = clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return result;
}

time_t time(time_t* now) noexcept {
  timespec precise{};
  clock_gettime(CLOCK_REALTIME, &precise);
  if (now != nullptr) *now = precise.tv_sec;
  return precise.tv_sec;
}

}  // extern "C"
