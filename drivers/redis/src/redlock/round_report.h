#pragma once

#include <string>

#include "lockkeeper/listener.h"
#include "redlock/redlock_votes.h"
#include "wire/mux/node_group.h"
#include "wire/mux/round.h"
#include "wire/protocol/resp.h"

namespace lockkeeper::redis {

// What a round was like, for listeners and in messages.

/// The first error among a node's replies; null when there is none.
const Reply* errorIn(const Round::Seat& seat);

NodeOutcome outcomeOf(const Round::Seat& seat, Vote vote);

/// Why a node, named `store`, has given no vote.
std::string reasonOf(const std::string& store, const Round::Seat& seat);
/// Likewise for all that have given none.
std::string reasons(const NodeGroup& group, const Round& round);

/// ConfigError when too many nodes are set up wrongly for a quorum, else StoreUnavailable.
[[noreturn]] void throwNoQuorum(const std::string& store, const NodeGroup& group, const Round& round);

}  // namespace lockkeeper::redis
