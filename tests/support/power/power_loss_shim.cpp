// Preloaded into a server: before it overwrites a part of a regular file, what was there is written to the
// end of the file POWER_LOSS_FILE, and so is each fsync that has come to its end. From that, power_loss.h
// takes back what a power cut would have lost. It has no sanitizers, since the process has none.

#include "power_loss_record.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace {

using lockkeeper::test::PowerLossRecord;

std::atomic_flag busy;
std::atomic<int> journal = -1;

/// Writes of one file in the order of their records.
class Guard {
 public:
  Guard() {
    while (busy.test_and_set(std::memory_order_acquire)) ::syscall(SYS_sched_yield);
  }
  ~Guard() { busy.clear(std::memory_order_release); }
};

// From whatever asks first. Not the C library's own functions, which are ours here.
int openJournal() {
  int file = journal;
  if (file >= 0) return file;
  const char* const path = std::getenv("POWER_LOSS_FILE");
  if (path == nullptr) ::_exit(99);
  file = static_cast<int>(
      ::syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (file < 0) ::_exit(99);
  journal = file;
  return file;
}

void note(const std::string& bytes) {
  if (::syscall(SYS_write, openJournal(), bytes.data(), bytes.size()) != static_cast<long>(bytes.size()))
    ::_exit(99);
}

std::string textOf(const PowerLossRecord& record) {
  return {reinterpret_cast<const char*>(&record), sizeof record};
}

bool statusOf(int file, struct stat& status) {
  return ::syscall(SYS_fstat, file, &status) == 0 && S_ISREG(status.st_mode);
}

/// Called with the guard.
void keep(int file, std::int64_t offset, std::size_t count) {
  struct stat status {};
  if (!statusOf(file, status)) return;
  std::string before(count, '\0');
  long there = 0;
  if (offset < status.st_size) {
    // The descriptor may be for writing only, or want aligned buffers.
    const std::string path = "/proc/self/fd/" + std::to_string(file);
    const long reading = ::syscall(SYS_openat, AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC, 0);
    if (reading < 0) ::_exit(99);
    there = ::syscall(SYS_pread64, reading, before.data(), count, offset);
    ::syscall(SYS_close, reading);
    if (there < 0) ::_exit(99);
  }
  before.resize(static_cast<std::size_t>(there));
  note(textOf({.inode = status.st_ino, .offset = offset, .count = there, .size = status.st_size}) + before);
}

bool isSynchronous(int file) {
  const long flags = ::syscall(SYS_fcntl, file, F_GETFL);
  return flags >= 0 && (flags & (O_SYNC | O_DSYNC)) != 0;
}

/// What was written before the call is on the disk after it, and nothing else certainly is.
template <class Call>
int synced(int file, const Call& call) {
  struct stat status {};
  std::int64_t position = 0;
  {
    const Guard guard;
    position = ::syscall(SYS_lseek, openJournal(), 0, SEEK_END);
  }
  const int result = static_cast<int>(call());
  if (result == 0 && statusOf(file, status)) {
    const Guard guard;
    note(textOf({.inode = status.st_ino, .offset = position, .count = PowerLossRecord::synced}));
  }
  return result;
}

ssize_t writeAt(int file, const void* bytes, std::size_t count, std::int64_t offset) {
  if (isSynchronous(file)) return ::syscall(SYS_pwrite64, file, bytes, count, offset);
  const Guard guard;
  keep(file, offset, count);
  return ::syscall(SYS_pwrite64, file, bytes, count, offset);
}

}  // namespace

extern "C" {

ssize_t pwrite(int file, const void* bytes, std::size_t count, off_t offset) {
  return writeAt(file, bytes, count, offset);
}

ssize_t pwrite64(int file, const void* bytes, std::size_t count, off64_t offset) {
  return writeAt(file, bytes, count, offset);
}

ssize_t write(int file, const void* bytes, std::size_t count) {
  struct stat status {};
  if (file == journal || isSynchronous(file) || !statusOf(file, status)) {
    return ::syscall(SYS_write, file, bytes, count);
  }
  const Guard guard;
  const bool appends = (::syscall(SYS_fcntl, file, F_GETFL) & O_APPEND) != 0;
  keep(file, appends ? status.st_size : ::syscall(SYS_lseek, file, 0, SEEK_CUR), count);
  return ::syscall(SYS_write, file, bytes, count);
}

int fsync(int file) {
  return synced(file, [file] { return ::syscall(SYS_fsync, file); });
}

int fdatasync(int file) {
  return synced(file, [file] { return ::syscall(SYS_fdatasync, file); });
}

// Writes to mapped memory are not seen: MariaDB then writes its log by pwrite(), as on a disk.
void* mmap64(void* at, std::size_t length, int protection, int flags, int file, off64_t offset) noexcept {
  if (file >= 0 && (flags & MAP_SHARED) != 0 && (protection & PROT_WRITE) != 0) {
    errno = ENODEV;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(::syscall(SYS_mmap, at, length, protection, flags, file, offset));
}

// A new file may get the number of one that is gone.
int unlink(const char* path) noexcept {
  struct stat status {};
  const bool last = ::syscall(SYS_newfstatat, AT_FDCWD, path, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                    S_ISREG(status.st_mode) && status.st_nlink == 1;
  const Guard guard;
  const int result = static_cast<int>(::syscall(SYS_unlinkat, AT_FDCWD, path, 0));
  if (result == 0 && last) {
    const int error = errno;
    const std::int64_t position = ::syscall(SYS_lseek, openJournal(), 0, SEEK_END);
    note(textOf({.inode = status.st_ino, .offset = position, .count = PowerLossRecord::synced}));
    errno = error;
  }
  return result;
}

}  // extern "C"
