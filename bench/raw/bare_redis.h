#pragma once

#include <cstdint>
#include <string>

#include "contest.h"

namespace lockkeeper::bench {

/// What a bare client promises whoever takes something from it.
enum class Promise {
  lock,        ///< One holder at a time, for 30 s; who waits in a queue is not passed over by a release.
  fencedLock,  ///< And a fence, also after a counter was lost: one more than the last, or the server's time.
  share,       ///< One of 1,000 shares of one key, for 30 s, and a fence; who waits is not passed over.
};

enum class Connections { oneForEachThread, oneForAll };

/// Takes and gives back by hiredis and the fewest commands that keep the promise. Nobody waits in a queue
/// here, so the script that a release would send then does not exist: it throws.
Way bareWay(std::string name, std::uint16_t port, Promise promise, Connections connections);

/// One key for all threads, by hiredis with SET NX and a compare-and-delete: they wait in a queue of the
/// process for their turns, of which up to 64 follow each other without asking the store.
Way bareTurns(std::string name, std::uint16_t port);

}  // namespace lockkeeper::bench
