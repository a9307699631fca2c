#include "run/signal_queue.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace lockkeeper::cli {
namespace {

// This process's own faults, and what a terminal does to its background.
constexpr std::array notQueued{SIGABRT, SIGBUS, SIGFPE,  SIGILL,  SIGPIPE,
                               SIGSEGV, SIGSYS, SIGTRAP, SIGTTIN, SIGTTOU};

bool isIgnored(int number) {
  struct sigaction action {};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

SignalQueue::SignalQueue() {
  ::signal(SIGCHLD, SIG_DFL);  // If our caller ignores it, the kernel does not tell how the command ends.
  sigset_t queued;
  sigfillset(&queued);
  for (const int number : notQueued) sigdelset(&queued, number);
  for (int number = 1; number <= SIGRTMAX; ++number) {
    if (isIgnored(number)) sigdelset(&queued, number);
  }
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

bool endsByDefault(int signal) {
  constexpr std::array harmless{SIGCHLD, SIGCONT, SIGTSTP, SIGURG, SIGWINCH};
  return std::find(harmless.begin(), harmless.end(), signal) == harmless.end();
}

bool asksToEnd(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

bool stopBy(int signal, pid_t whom) {
  sigset_t stopping;
  sigset_t former;
  sigemptyset(&stopping);
  sigaddset(&stopping, signal);
  ::kill(whom, signal);  // It takes back a SIGCONT that waits: one that waits afterwards has continued us.
  ::pthread_sigmask(SIG_UNBLOCK, &stopping, &former);
  ::pthread_sigmask(SIG_SETMASK, &former, nullptr);
  sigset_t waiting;
  ::sigpending(&waiting);
  return sigismember(&waiting, SIGCONT) == 1;
}

}  // namespace lockkeeper::cli
