#pragma once

#include "getlock/getlock_options.h"
#include "session/open_session.h"

namespace lockkeeper::mysql {

/// openSession(), for locks and, if the options say so, their fences.
ReadySession openForLocks(const GetLockOptions& options, std::shared_ptr<Clock> clock,
                          sql::SocketWatch& watch, Instant deadline);

}  // namespace lockkeeper::mysql
