#include "run/signal_queue.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace lockkeeper::cli {

SignalQueue::SignalQueue() {
  sigset_t queued;
  sigemptyset(&queued);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&queued, number);
  ::pthread_sigmask(SIG_BLOCK, &queued, &formerMask_);
  sigdelset(&formerMask_, SIGPIPE);  // Blocked by Poco when it is loaded, not by who has started us.
  descriptor_ = ::signalfd(-1, &queued, SFD_NONBLOCK | SFD_CLOEXEC);
  if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "signalfd");
}

SignalQueue::~SignalQueue() {
  ::close(descriptor_);
  ::pthread_sigmask(SIG_SETMASK, &formerMask_, nullptr);
}

std::optional<int> SignalQueue::next() {
  signalfd_siginfo signal{};
  if (::read(descriptor_, &signal, sizeof signal) != sizeof signal) return std::nullopt;
  return static_cast<int>(signal.ssi_signo);
}

}  // namespace lockkeeper::cli
