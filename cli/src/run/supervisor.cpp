#include "run/supervisor.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <iostream>
#include <stop_token>

#include "exit_codes.h"
#include "lockkeeper/driver/clock.h"
#include "lockkeeper/error.h"
#include "run/event.h"

namespace lockkeeper::cli {
namespace {

// While a group is ending: nothing tells when the last of its processes has gone.
constexpr int endingPollMs = 20;

/// Stops with the command, as the shell expects of a job.
void stopTogether(const ChildProcess& child, const Terminal& terminal) {
  if (::getpid() == 1) return child.signalGroup(SIGCONT);  // Process 1 cannot be stopped.
  terminal.takeBack();
  ::raise(SIGSTOP);
}

/// Lets the command go on, unless the lock was lost meanwhile: nobody renews it while this process is
/// stopped.
void goOn(const ChildProcess& child, Lock& lock, const Terminal& terminal) {
  try {
    lock.renew();
  } catch (const Error&) {
    // The lock is lost, or the store does not answer and the old lease may still run.
  }
  if (!lock.valid()) return;
  terminal.handTo(child.group());
  child.signalGroup(SIGCONT);
}

void passSignals(ChildProcess& child, Lock& lock, SignalQueue& signals, const Terminal& terminal) {
  while (const auto signal = signals.next()) {
    if (*signal == SIGCHLD) {
      child.check();
      if (child.wasStopped() && terminal.ours()) stopTogether(child, terminal);
    } else if (*signal == SIGCONT) {
      goOn(child, lock, terminal);
    } else {
      child.signalGroup(*signal);
    }
  }
}

/// SIGTERM, and after the grace SIGKILL, until no process of the group is left.
void endGroup(ChildProcess& child, SignalQueue& signals, const Terminal& terminal,
              std::chrono::milliseconds grace) {
  const auto clock = systemClock();
  const Instant killAt = saturatingAdd(clock->now(), grace);
  terminal.handTo(child.group());
  child.signalGroup(SIGTERM);
  child.signalGroup(SIGCONT);
  while (!child.exitCode() || child.groupLives()) {
    if (clock->now() >= killAt) child.signalGroup(SIGKILL);
    pollfd waiting{signals.descriptor(), POLLIN, 0};
    ::poll(&waiting, 1, endingPollMs);
    while (const auto signal = signals.next()) {
      if (*signal != SIGCHLD) child.signalGroup(*signal);
    }
    child.check();
  }
}

}  // namespace

int supervise(ChildProcess& child, Lock& lock, poco::OwnerPipe* owner, SignalQueue& signals,
              const Terminal& terminal, std::chrono::milliseconds grace) {
  Event lost;
  const std::stop_callback<std::function<void()>> onLoss(lock.lost(), [&lost] { lost.set(); });
  while (!child.exitCode()) {
    std::array<pollfd, 2> waiting{{{signals.descriptor(), POLLIN, 0}, {lost.descriptor(), POLLIN, 0}}};
    ::poll(waiting.data(), waiting.size(), -1);
    passSignals(child, lock, signals, terminal);
    if (waiting[1].revents != 0 && !child.exitCode()) {
      std::cerr << "lockkeeper: the lock " << quoted(lock.key()) << " was lost: the command is being ended\n";
      if (owner != nullptr) owner->close();  // so that a run inside the command knows why it is ended
      endGroup(child, signals, terminal, grace);
      return exitLost;
    }
  }
  return *child.exitCode();
}

}  // namespace lockkeeper::cli
