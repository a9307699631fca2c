#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace lockkeeper::cli {

/// Something that happens once and can be polled for. Any thread may set it.
class PollableEvent {
 public:
  PollableEvent() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  }
  PollableEvent(const PollableEvent&) = delete;
  PollableEvent& operator=(const PollableEvent&) = delete;
  ~PollableEvent() { ::close(descriptor_); }

  void set() noexcept { (void)!::write(descriptor_, &one, sizeof one); }
  /// Readable from set() on.
  int descriptor() const { return descriptor_; }

 private:
  static constexpr std::uint64_t one = 1;
  int descriptor_;
};

}  // namespace lockkeeper::cli
