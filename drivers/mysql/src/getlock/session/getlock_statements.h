#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hosts/session_rules.h"
#include "lockkeeper/driver/driver.h"

// The text of every statement of mysql+getlock, appended to a batch. Names are those of lockName(), which can
// stand in a statement as they are; labels are written in hexadecimal.

namespace lockkeeper::mysql::statements {

/// A counter row that somebody has locked shall fail the claim within one I/O timeout, not hold the session.
/// READ COMMITTED would need a binary log of rows.
inline constexpr SessionRules sessionRules{.isolation = SessionRules::Isolation::repeatableRead};

/// Does nothing, but fails unless fences may be drawn.
std::string checkFences();

/// Reads their table, and answers a number.
std::string readFences();

/// Draws the next `count` fences of the claim's name, whoever holds the name; with `again` and a count of 1,
/// the last one, if that was given to the same claim. The first one is the statement's insert id. `session`
/// is the one that holds the name; 0: none.
std::string drawFence(const Claim& claim, bool again, std::uint32_t count, std::uint64_t session);

/// Answers the last fence of the name; no row when none was given.
std::string lastFence(std::string_view name);

// All of these answer, before anything else, who they are: CONNECTION_ID() and @@read_only.

/// Claims the name, waiting for `wait` at most: answers GET_LOCK's result. When it is broken off, nobody
/// knows that. The answer may tell what the server was before the wait.
void addClaim(std::string& batch, std::string_view name, std::chrono::seconds wait);

/// Claims the name at once, and draws the fence when that is granted: answers both. An error of the second
/// statement comes after a grant.
void addFencedClaim(std::string& batch, const Claim& claim, bool again, std::uint32_t count,
                    std::uint64_t session);

/// Answers RELEASE_LOCK's result.
void addRelease(std::string& batch, std::string_view name);

/// Answers nothing else: shows the server that we are there. `inGroup`: reads a table, so that the server
/// must ask its replication group before.
void addTouch(std::string& batch, bool inGroup);

/// Draws the fence: answers NULL, then the fence.
void addFence(std::string& batch, const Claim& claim, bool again, std::uint32_t count, std::uint64_t session);

/// Answers IS_USED_LOCK's result, and with fences who was granted the name last: fence, session, owner.
/// `again` gives a claim that is just being granted the time to write that: 20 ms to begin, and all that it
/// takes.
void addHolderQuery(std::string& batch, std::string_view name, bool fences, bool again);

/// No result: for the beginning of a batch.
void addFree(std::string& batch, const std::vector<std::string>& names);

std::string cancel(std::uint64_t session);

}  // namespace lockkeeper::mysql::statements
