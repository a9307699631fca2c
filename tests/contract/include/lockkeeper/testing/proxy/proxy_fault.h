#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace lockkeeper::testing {

/// How a connection is ended.
enum class Ending {
  fin,  ///< In order, as by a server that exits.
  rst,  ///< By a reset, as by a crashed host or a firewall.
};

/// What a FaultProxy does to the bytes that pass it.
struct ProxyFault {
  /// Which fault.
  enum class Kind {
    none,   ///< Passes everything on.
    cut,    ///< Once: passes `bytes` bytes of replies, then ends that connection instead of passing the next.
    delay,  ///< Holds each batch of replies back for `pause`.
    drip,   ///< Passes one byte of a reply each `pause`.
    blackhole,    ///< Takes everything from both sides and passes nothing on.
    dropReplies,  ///< Requests reach the server; replies are thrown away, after their first `bytes` bytes.
    replace,      ///< Once: after the replies to `requests` requests, sends `text` instead of the next.
    hold,   ///< Once: after `requests` requests that contain `text`, keeps the next of them: see held().
    step,   ///< Once: after `requests` round trips, the next request that contains `text` waits in the proxy
            ///< until the next set().
    flood,  ///< Sends `text` again and again, without end, to every client that sends something.
  };

  Kind kind = Kind::none;
  std::size_t bytes = 0;
  Ending ending = Ending::fin;
  std::chrono::milliseconds pause{0};
  std::string text{};
  std::size_t requests = 0;
};

}  // namespace lockkeeper::testing
