#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "session/server_options.h"

namespace lockkeeper::mysql {

/// What became of a log-in at one of several hosts.
enum class HostState {
  silent,       ///< No answer yet.
  unreachable,  ///< Nobody listens there, or it is too busy: it may pass.
  readOnly,     ///< It takes no writes: a replica, or a member that has lost its group.
  refused,      ///< It does not let us in, or is not the server that TLS expects.
  unfit,        ///< It lets us in, but locks would not hold there, or a table is missing.
  writable,
};

struct HostReport {
  HostState state = HostState::silent;
  std::string server{};  ///< Which server it is, as ServerSession::server() says.
  std::string group{};   ///< The name of its replication group; empty: none, or not known.
  std::string why{};     ///< Words for people, unless it is writable.
};

/// Which of the hosts takes the writes. `reports` has one entry for each. Throws StoreUnavailable when none
/// does, which says why of each, and when two do: a switch has gone wrong, and locks of one would not exclude
/// those of the other. ConfigError when that will not pass by itself: a host is unfit, all refuse us, or two
/// belong to different replication groups.
std::size_t writableAmong(std::span<const HostReport> reports, const ServerOptions& options);

}  // namespace lockkeeper::mysql
