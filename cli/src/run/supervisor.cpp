#include "run/supervisor.h"

#include <poll.h>
#include <signal.h>

#include <array>
#include <functional>
#include <iostream>
#include <stop_token>
#include <utility>

#include "exit_codes.h"
#include "lockkeeper/base/clock.h"
#include "lockkeeper/error.h"
#include "run/pollable_event.h"
#include "run/terminal.h"

namespace lockkeeper::cli {
namespace {

// While a group is ending: nothing tells when the last of its processes has gone.
constexpr int endingPollMs = 20;

/// Says, once, if the command cannot be ended like this.
void signalGroup(const ChildProcess& child, int signal) {
  if (child.signalGroup(signal) || !endsByDefault(signal)) return;
  static bool said = false;
  if (std::exchange(said, true)) return;
  std::cerr << "lockkeeper: the command runs as another user and cannot be signalled: it may still be at "
               "work\n";
}

/// Gives the command the terminal that it has asked for, or else stops with it, as the shell expects of a
/// job.
void followStop(const ChildProcess& child, Terminal& terminal, int signal) {
  if (!terminal.exists()) return;
  const bool asks = signal == SIGTTIN || signal == SIGTTOU;
  if (asks && terminal.hand()) {
    child.signalGroup(SIGCONT);
    return;
  }
  // In the background, SIGSTOP is not the terminal's: somebody wants the command to stop, and keep its lock.
  if (!terminal.takeBack() && signal == SIGSTOP) return;
  // All of our group, as a shell that runs a script knows it, or a run outside of this one.
  if (!stopBy(asks ? signal : SIGTSTP, 0) && !asks) child.signalGroup(SIGCONT);
}

/// Lets the command go on, unless the lock was lost meanwhile: nobody renews it while this process is
/// stopped.
void goOn(const ChildProcess& child, Lock& lock, Terminal& terminal) {
  try {
    lock.renew();
  } catch (const Error&) {
    // The lock is lost, or the store does not answer and the old lease may still run.
  }
  if (!lock.valid()) return;
  terminal.handAgain();
  child.signalGroup(SIGCONT);
}

void passSignals(ChildProcess& child, Lock& lock, SignalQueue& signals, Terminal& terminal) {
  while (const auto signal = signals.next()) {
    if (*signal == SIGCHLD) {
      child.check();
      if (const auto by = child.stoppedBy()) followStop(child, terminal, *by);
    } else if (*signal == SIGCONT) {
      goOn(child, lock, terminal);
    } else {
      signalGroup(child, *signal);
    }
  }
}

/// SIGTERM, and after the grace SIGKILL, until no process of the group is left.
void endGroup(ChildProcess& child, SignalQueue& signals, Terminal& terminal,
              std::chrono::milliseconds grace) {
  const auto clock = systemClock();
  const Instant killAt = saturatingAdd(clock->now(), grace);
  terminal.handAgain();
  signalGroup(child, SIGTERM);
  child.signalGroup(SIGCONT);
  while (!child.exitCode() || child.groupLives()) {
    if (clock->now() >= killAt) signalGroup(child, SIGKILL);
    pollfd waiting{signals.descriptor(), POLLIN, 0};
    ::poll(&waiting, 1, endingPollMs);
    while (const auto signal = signals.next()) {
      if (*signal != SIGCHLD) signalGroup(child, *signal);
    }
    child.check();
  }
}

}  // namespace

int supervise(ChildProcess& child, Lock& lock, poco::OwnerPipe* owner, SignalQueue& signals,
              std::chrono::milliseconds grace) {
  Terminal terminal(child.group());
  PollableEvent lost;
  const std::stop_callback<std::function<void()>> onLoss(lock.lost(), [&lost] { lost.set(); });
  while (!child.exitCode()) {
    std::array<pollfd, 2> waiting{{{signals.descriptor(), POLLIN, 0}, {lost.descriptor(), POLLIN, 0}}};
    ::poll(waiting.data(), waiting.size(), -1);
    passSignals(child, lock, signals, terminal);
    if (waiting[1].revents != 0 && !child.exitCode()) {
      if (owner != nullptr) owner->close();  // so that a run inside the command knows why it is ended
      endGroup(child, signals, terminal, grace);
      // Not before: what is printed may find no reader, or stop us.
      terminal.takeBack();
      std::cerr << "lockkeeper: the lock " << quoted(lock.key()) << " was lost: the command was ended\n";
      return exitLost;
    }
  }
  return *child.exitCode();
}

}  // namespace lockkeeper::cli
