#pragma once

#include <cstddef>
#include <memory>

#include "lockkeeper/base/clock.h"
#include "session/wait/socket_watch.h"

struct st_mysql;

namespace lockkeeper {
struct ServerAddress;
}

namespace lockkeeper::mysql {

struct ServerOptions;

struct CloseHandle {
  void operator()(st_mysql* handle) const;
};
using Handle = std::unique_ptr<st_mysql, CloseHandle>;

/// Of a row, of the rows of a result, or of any other message, in bytes. Whoever answers in the place of the
/// server could fill our memory otherwise.
inline constexpr std::size_t longestReply = std::size_t{64} << 20;

/// Connects to the address and logs in: each takes the options' connectTimeout at most. Of a name with
/// several addresses, those that do not answer share that time. Blocks until `deadline`, but for the lookup
/// of the name; with a verified certificate also for what the kernel needs to give up an address that is not
/// the first one. The watch must have been started. Throws StoreUnavailable and ConfigError.
Handle logIn(const ServerOptions& options, const ServerAddress& address, const Clock& clock,
             SocketWatch& watch, Instant deadline);

}  // namespace lockkeeper::mysql
