#pragma once

#include <string>

#include "lockkeeper/listener.h"
#include "redlock/redlock_votes.h"
#include "wire/mux/multiplexer.h"
#include "wire/protocol/resp.h"

namespace lockkeeper::redis {

// What a round was like, for listeners and in messages.

/// The first error among a node's replies; null when there is none.
const Reply* errorIn(const Answer& answer);

NodeOutcome outcomeOf(const Answer& answer, Vote vote);

/// Why a node, named `store`, has given no vote.
std::string reasonOf(const std::string& store, const Answer& answer);
/// The reasons of all nodes that have given none.
std::string reasons(const Multiplexer& nodes, const Request& round);

/// ConfigError when too many nodes are set up wrongly for a quorum, else StoreUnavailable if it `isUndone`,
/// or WithdrawalUnknown.
[[noreturn]] void throwNoQuorum(const std::string& store, const Multiplexer& nodes, const Request& round,
                                std::size_t quorum, bool isUndone);

}  // namespace lockkeeper::redis
