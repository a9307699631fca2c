#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lockkeeper/driver/driver.h"
#include "lockkeeper/permit/share.h"

/// Histories: what processes did with locks, guarded values and limits, and what came of it. A history says
/// whether the store and its clients kept their promises: docs/checking-histories.md.
namespace lockkeeper::testing::history {

/// What a call does.
enum class Operation {
  lock,     ///< Asks for a key, or for a share of it. A call that is `ok` is a grant.
  renew,    ///< Extends a grant.
  release,  ///< Gives a grant back.
  read,     ///< Reads a value under a grant.
  write,    ///< Writes a value under a grant.
  take,     ///< Charges a limit.
};

/// How much of a key a lock call asks for.
enum class Kind {
  exclusive,    ///< All of it.
  shared,       ///< A reader's share.
  permits,      ///< So many of a number of permits.
  upgradeable,  ///< A reader's share that may be upgraded; one holder at a time has it.
  upgrade,      ///< What the holder of an upgradeable share takes in addition, to be the writer.
};

/// What a record says.
enum class Phase {
  invoke,   ///< A call begins: nothing has been sent yet.
  queued,   ///< The store was asked, and has answered that the call waits in its queue. Any number of times.
  ok,       ///< The call did what it was to do.
  fail,     ///< The call certainly had no effect.
  unknown,  ///< The call may have had its effect, and may still have it.
  lost,     ///< The process was told that it has lost a grant.
  died,     ///< The process was killed, and believes nothing any more. What it has sent may still arrive.
  paused,   ///< The process was stopped,
  resumed,  ///< and goes on.
  end,      ///< When all leases were over, the store was asked what it still holds: `key`, or nothing.
};

/// One line of a history. Fields that a phase or an operation does not name are not looked at, or must be
/// empty where they are optional.
struct Record {
  std::int64_t time = 0;  ///< ns on one clock for all processes that nobody sets, such as CLOCK_BOOTTIME.
  Phase phase = Phase::invoke;
  std::string process{};  ///< Its name; a process that is started again has another one. Not of `end`.
  std::uint64_t id = 0;   ///< Of the call; the same in each record of it, and unique in its process.

  // Of an invoke, and of `end`:
  Operation operation = Operation::lock;
  std::string key{};                     ///< What is locked, read, written or charged. UTF-8.
  Kind kind = Kind::exclusive;           ///< Of lock.
  Share permits{};                       ///< Of lock with Kind::permits: how many of how many.
  std::uint64_t grant = 0;               ///< The `id` of the lock call: of renew, release, read and write.
  std::string policy{};                  ///< Of take: the name of a policy of the history.
  std::int64_t units = 1;                ///< Of take: what it charges.
  std::optional<std::int64_t> within{};  ///< ns after which an answer must be there; empty: any time.

  // Of an ok; but the `value` of a write stands in its invoke:
  std::optional<Fence> fence{};  ///< Of lock, where the store has fences.
  std::optional<std::int64_t>
      until{};  ///< Of lock and renew: when the process stops to believe in its grant.
  std::optional<std::int64_t> value{};  ///< What was read, or is written: never the same value twice.
  std::optional<std::int64_t> at{};     ///< Of take: the store's time, in µs, where the store tells it.
};

/// What the store promises, beyond what each store must keep.
struct StorePromises {
  bool fences = false;  ///< Each writer's fence is above those of all grants that were there before its call.
  bool fifo = false;    ///< Whoever waits in the store's queue is served before those who come later.
};

}  // namespace lockkeeper::testing::history
