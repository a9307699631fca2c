#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <stop_token>

namespace lockkeeper::mysql {

/// A file that can be read as soon as `stop` is triggered, for poll().
class WakeUp {
 public:
  explicit WakeUp(std::stop_token stop) : callback_(std::move(stop), Signal{file_}) {}
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;

  /// -1, which poll() skips, when the system has no file left: whoever waits must look at `stop` now and
  /// then.
  int file() const { return file_.number; }

 private:
  struct File {
    File() : number(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() {
      if (number >= 0) ::close(number);
    }
    const int number;
  };
  struct Signal {
    const File& file;
    void operator()() const {
      constexpr std::uint64_t one = 1;
      static_cast<void>(::write(file.number, &one, sizeof(one)) == 0);
    }
  };

  File file_;
  std::stop_callback<Signal> callback_;
};

}  // namespace lockkeeper::mysql
