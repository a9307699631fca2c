#include <poll.h>
#include <signal.h>

#include <array>
#include <iostream>
#include <memory>
#include <optional>
#include <stop_token>
#include <system_error>

#include "command_settings.h"
#include "commands.h"
#include "exit_codes.h"
#include "lockkeeper/error.h"
#include "lockkeeper/internal/whole_number.h"
#include "lockkeeper/lock_manager.h"
#include "lockkeeper/poco/owner/owner_pipe.h"
#include "run/background.h"
#include "run/child_process.h"
#include "run/signal_queue.h"
#include "run/supervisor.h"
#include "shown.h"
#include "stores.h"

namespace lockkeeper::cli {
namespace {

constexpr std::chrono::seconds defaultGrace{5};

/// One of --permits; empty without it.
std::optional<Share> shareOf(const CommandLine& line) {
  const auto given = line.option("permits");
  if (!given) return std::nullopt;
  const auto limit = wholeNumber<std::uint32_t>(*given);
  if (limit.value_or(0) < 1 || *limit > Share::most) {
    throw UsageError("--permits is " + lockkeeper::quoted(*given) + ": it must be a whole number from 1 to " +
                     std::to_string(Share::most));
  }
  return Share{.weight = 1, .limit = *limit};
}

/// Interrupted by a signal while waiting for the lock.
struct Interrupted {
  int signal;
};

/// What a process does by itself at this signal, which nobody handles. Returns whether it ends.
bool obey(int signal) {
  if (signal == SIGTSTP) stopBy(signal);
  return endsByDefault(signal);
}

/// Waits for the lock on a thread of its own, so that this one sees signals. Throws Interrupted, or what
/// LockManager::lock throws.
Lock acquire(LockManager& manager, const std::string& key, const std::optional<Share>& share,
             SignalQueue& signals) {
  std::stop_source stop;
  Background<Lock> lock([&] { return manager.lock(key, {.stop = stop.get_token(), .share = share}); });
  int interruption = 0;
  std::array<pollfd, 2> waiting{{{signals.descriptor(), POLLIN, 0}, {lock.descriptor(), POLLIN, 0}}};
  while (waiting[1].revents == 0) {
    ::poll(waiting.data(), waiting.size(), -1);
    while (const auto signal = signals.next()) {
      if (!obey(*signal)) continue;
      interruption = *signal;
      stop.request_stop();
    }
  }
  try {
    Lock held = lock.get();
    if (interruption == 0) return held;
  } catch (const Error&) {
    if (interruption == 0) throw;
  }
  throw Interrupted{interruption};
}

/// The exit code, given what the command's own was.
int release(Lock& lock, int exitCode) {
  switch (lock.release()) {
    case ReleaseResult::released:
    case ReleaseResult::notHeld:
      return exitCode;
    case ReleaseResult::notOwner:
      if (exitCode != exitLost) {
        std::cerr << "lockkeeper: the lock " << quoted(lock.key()) << " was lost while the command ran\n";
      }
      return exitLost;
    case ReleaseResult::unavailable:
    case ReleaseResult::unknown:
      std::cerr << "lockkeeper: the lock " << quoted(lock.key())
                << " could not be released: it stays taken until its lease ends\n";
      return exitCode;
  }
  return exitCode;
}

/// Gives the lock to the command, so that it may lock the key again. Null where that cannot be: then the
/// command waits for the key like anyone else.
std::unique_ptr<poco::OwnerPipe> passOn(LockManager& manager, const Lock& lock) {
  try {
    if (const auto token = manager.ownerToken(lock)) return std::make_unique<poco::OwnerPipe>(*token);
  } catch (const Error&) {
    // The store does not answer now.
  } catch (const std::system_error&) {
    // There are no more descriptors.
  }
  return nullptr;
}

int runHolding(LockManager& manager, Lock& lock, std::vector<std::string> command, SignalQueue& signals,
               std::chrono::milliseconds grace) {
  ChildProcess::Setup setup{std::move(command), {}, signals.formerMask(), {}};
  setup.environment["LOCKKEEPER_KEY"] = lock.key();
  // Empty rather than unset: a command that runs inside another one's lock must not see that one's fence.
  setup.environment["LOCKKEEPER_FENCE"] = lock.fence() ? std::to_string(*lock.fence()) : "";
  const auto owner = passOn(manager, lock);
  if (owner) {
    setup.environment[poco::OwnerPipe::variable] = owner->value();
    setup.inherited = owner->descriptor();
  }
  if (!lock.valid()) {
    std::cerr << "lockkeeper: the lock " << quoted(lock.key())
              << " was lost before the command was started: it was not\n";
    return exitLost;
  }
  try {
    ChildProcess child(setup);
    return supervise(child, lock, owner.get(), signals, grace);
  } catch (const NotStarted& error) {
    std::cerr << "lockkeeper: " << oneLine(error.what()) << "\n";
    return error.exitCode();
  }
}

}  // namespace

int runUnderLock(const CommandLine& line) {
  if (!line.afterDashes || line.afterDashes->empty()) throw UsageError("expected -- COMMAND after the KEY");
  if (line.operands.size() != 1) throw UsageError("expected one KEY before --");
  const std::chrono::milliseconds grace = durationOption(line, "grace", defaultGrace);
  Settings settings = readSettings(line);
  settings.manager.lock.renew = Renew::automatic;  // the command cannot renew it
  const std::optional<Share> share = shareOf(line);
  SignalQueue signals;
  poco::InheritedOwner inherited;
  LockManager manager(withOwner(openStore(settings), inherited.tokens()), settings.manager);
  try {
    Lock lock = acquire(manager, line.operands.front(), share, signals);
    const int exitCode = runHolding(manager, lock, *line.afterDashes, signals, grace);
    inherited.look();  // an outer run that has lost the lock has ended the command for that
    return release(lock, exitCode);
  } catch (const Interrupted& interruption) {
    return exitSignal + interruption.signal;
  }
}

}  // namespace lockkeeper::cli
