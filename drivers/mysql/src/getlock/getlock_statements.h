#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/driver/clock.h"

// The text of every statement of mysql+getlock, appended to a batch. Names are those of lockName(), which can
// stand in a statement as they are; labels are written in hexadecimal.

namespace lockkeeper::mysql::statements {

/// For a new session: a batch without a result.
std::string setUp();

/// Does nothing, but fails unless `addClaim` will be allowed to count fences.
std::string checkFences();

/// Answers the next fence of the name, whoever holds the name; with `again`, the last one, if that was given
/// to the same claim. `claim` is a digest in hexadecimal.
std::string drawFence(std::string_view name, std::string_view claim, bool again, std::string_view owner);

/// Answers the last fence of the name; no row when none was given.
std::string lastFence(std::string_view name);

/// One batch that claims the name, waiting for `wait`, and counts its fence up if, and only if, it got it.
/// Answers GET_LOCK's result and CONNECTION_ID(), and with a fence that as well.
void addClaim(std::string& batch, std::string_view name, std::chrono::seconds wait);
void addFencedClaim(std::string& batch, std::string_view name, std::chrono::seconds wait,
                    std::string_view owner);

/// Answers RELEASE_LOCK's result and CONNECTION_ID().
void addRelease(std::string& batch, std::string_view name);

/// Answers CONNECTION_ID(): shows the server that we are there.
void addTouch(std::string& batch);

/// Answers IS_USED_LOCK's result and CONNECTION_ID(), and with fences who was granted the name last: fence,
/// session, owner. `again` gives a claim that is just being granted the time to write that: 20 ms to begin,
/// and all that it takes.
void addLook(std::string& batch, std::string_view name, bool fences, bool again);

/// No result: for the beginning of a batch.
void addFree(std::string& batch, const std::vector<std::string>& names);
void addIdleTimeout(std::string& batch, std::chrono::seconds timeout);

std::string cancel(std::uint64_t session);

}  // namespace lockkeeper::mysql::statements
