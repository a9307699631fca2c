#pragma once

#include <chrono>

#include "lockkeeper/lock.h"
#include "lockkeeper/poco/owner/owner_pipe.h"
#include "run/child_process.h"
#include "run/signal_queue.h"

namespace lockkeeper::cli {

/// Watches the command and its lock until the command has ended: passes signals on, and ends the command's
/// process group when the lock is lost, of which `owner`, unless it is null, tells before. Returns the
/// command's exit code, or exitLost. Blocks.
int supervise(ChildProcess& child, Lock& lock, poco::OwnerPipe* owner, SignalQueue& signals,
              std::chrono::milliseconds grace);

}  // namespace lockkeeper::cli
