#include "lockkeeper/poco/owner/owner_pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <utility>

#include "lockkeeper/internal/whole_number.h"
#include "owner/owner_record.h"

namespace lockkeeper::poco {
namespace {

// Above those that shell scripts use for files of their own.
constexpr int lowestDescriptor = 20;

/// One that is closed with its owner.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) noexcept : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const noexcept { return number_; }
  int release() noexcept { return std::exchange(number_, -1); }

 private:
  int number_;
};

Descriptor opened(int number, const char* call) {
  if (number < 0) throw std::system_error(errno, std::generic_category(), call);
  return Descriptor(number);
}

std::pair<Descriptor, Descriptor> newPipe() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe2");
  }
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::string inheritedValue() {
  const char* const value = std::getenv(OwnerPipe::variable);
  return value != nullptr ? value : "";
}

/// What is in a pipe, which keeps it: others read it, too. Empty where it is no pipe, or has nothing.
std::string peek(int descriptor) {
  const auto [copy, entry] = newPipe();
  std::array<char, 4096> bytes;
  if (::tee(descriptor, entry.get(), bytes.size(), SPLICE_F_NONBLOCK) <= 0) return {};
  const ssize_t size = ::read(copy.get(), bytes.data(), bytes.size());
  return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

}  // namespace

OwnerPipe::OwnerPipe(const OwnerToken& token) {
  auto [read, write] = newPipe();
  Descriptor high = opened(::fcntl(read.get(), F_DUPFD_CLOEXEC, lowestDescriptor), "fcntl");
  const std::string record = recordOf(token);
  if (::write(write.get(), record.data(), record.size()) != static_cast<ssize_t>(record.size())) {
    throw std::system_error(errno, std::generic_category(), "write");
  }
  read_ = high.release();
  write_ = write.release();
}

OwnerPipe::~OwnerPipe() {
  close();
  ::close(read_);
}

std::string OwnerPipe::value() const {
  const std::string before = inheritedValue();
  return before + (before.empty() ? "" : ",") + std::to_string(read_);
}

void OwnerPipe::close() noexcept {
  if (write_ >= 0) ::close(std::exchange(write_, -1));
}

class InheritedOwner::Watch {
 public:
  /// Null when there is nothing to watch.
  static std::unique_ptr<Watch> begin() {
    std::vector<Pipe> pipes;
    const std::string value = inheritedValue();
    for (std::size_t from = 0; from <= value.size();) {
      const std::size_t comma = std::min(value.find(',', from), value.size());
      const auto number = wholeNumber<int>(std::string_view(value).substr(from, comma - from));
      from = comma + 1;
      if (!number) continue;
      auto token = tokenIn(peek(*number));
      if (!token) continue;
      // Watched by a descriptor that this process does not pass on.
      Pipe pipe{opened(::fcntl(*number, F_DUPFD_CLOEXEC, lowestDescriptor), "fcntl"), {}, std::move(*token)};
      pipe.token.ended = pipe.end.get_token();
      pipes.push_back(std::move(pipe));
    }
    return pipes.empty() ? nullptr : std::make_unique<Watch>(std::move(pipes));
  }

  ~Watch() {
    const std::uint64_t one = 1;
    (void)!::write(stop_.get(), &one, sizeof one);
    thread_.join();
  }

  std::vector<OwnerToken> tokens() const {
    std::vector<OwnerToken> all;
    for (const Pipe& each : pipes_) all.push_back(each.token);
    return all;
  }

  void look() noexcept {
    for (Pipe& each : pipes_) {
      pollfd now{each.descriptor.get(), 0, 0};
      if (::poll(&now, 1, 0) > 0) each.end.request_stop();
    }
  }

  struct Pipe {
    Descriptor descriptor;
    std::stop_source end;
    OwnerToken token;
  };

  explicit Watch(std::vector<Pipe> pipes)
      : pipes_(std::move(pipes)), stop_(opened(::eventfd(0, EFD_CLOEXEC), "eventfd")) {
    // Here, since in the thread nobody would be told that there is no memory for it.
    std::vector<pollfd> waiting{{stop_.get(), POLLIN, 0}};
    for (const Pipe& each : pipes_) waiting.push_back({each.descriptor.get(), 0, 0});
    sigset_t all;
    sigset_t former;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &former);  // signals are for the other threads
    try {
      thread_ = std::thread([this, waiting = std::move(waiting)]() mutable { watch(waiting); });
    } catch (...) {
      ::pthread_sigmask(SIG_SETMASK, &former, nullptr);
      throw;
    }
    ::pthread_sigmask(SIG_SETMASK, &former, nullptr);
  }

 private:
  void watch(std::vector<pollfd>& waiting) noexcept {
    while (waiting[0].revents == 0) {
      if (::poll(waiting.data(), waiting.size(), -1) < 0) continue;
      for (std::size_t i = 1; i < waiting.size(); ++i) {
        if (waiting[i].revents == 0) continue;
        // Nobody can write any more. A descriptor that was closed here tells nothing: it counts as the end.
        pipes_[i - 1].end.request_stop();
        waiting[i].fd = -1;
        waiting[i].revents = 0;
      }
    }
  }

  std::vector<Pipe> pipes_;
  const Descriptor stop_;
  std::thread thread_;
};

InheritedOwner::InheritedOwner() : watch_(Watch::begin()) {}

InheritedOwner::~InheritedOwner() {
  if (forkGuard_.inherited()) static_cast<void>(watch_.release());  // its thread is not here
}

void InheritedOwner::look() noexcept {
  if (watch_ && !forkGuard_.inherited()) watch_->look();
}

std::vector<OwnerToken> InheritedOwner::tokens() const {
  return watch_ ? watch_->tokens() : std::vector<OwnerToken>();
}

}  // namespace lockkeeper::poco
