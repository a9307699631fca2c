#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "lockkeeper/driver/driver.h"
#include "wire/protocol/request.h"

namespace lockkeeper::redis {

/// What a node's answer means for the claim.
enum class Vote {
  yes,
  no,
  none,       ///< It has not answered, or with an error.
  malformed,  ///< It has answered what no Redis would.
};

/// How the votes stand.
struct Tally {
  std::size_t yes = 0;
  std::size_t no = 0;
  std::size_t open = 0;  ///< May become either.
  std::size_t lost = 0;  ///< Nobody will know.
};

/// Whether the node has ended the connection when it was asked: it may have done what it was asked, or do it
/// later.
inline bool isLost(const Answer& answer) {
  return answer.state == Answer::State::failed && answer.code != ErrorCode::storeUnavailable;
}

/// Adds the question whether a claim may have the key: a bare SET … NX, and for a caller that waits the
/// remaining time of whoever has it; for a resend the script that recognises the claim's own value.
void addClaim(Request& wire, const AcquireRequest& request, std::string_view value);
Vote claimVote(const Answer& answer);
/// After a no: how long the present holder has the key, where the node was asked and tells.
std::optional<std::chrono::milliseconds> busyFor(const Answer& answer);

/// Of a script that answers 1 or 0; of the index-th one when there are several.
Vote flagVote(const Answer& answer, std::size_t index = 0);
/// Of the script that shows the holder; yes when there is one.
Vote holderVote(const Answer& answer);
/// How many nodes show the same as this one: the same claim, or that the key is free. 0 when it has not
/// answered.
std::size_t agreeing(const Request& round, const Answer& with);
/// How long so many nodes will keep the claim that this one shows; empty: for ever.
std::optional<std::chrono::milliseconds> quorumRemaining(const Request& round, const Answer& with,
                                                         std::size_t quorum);

template <class VoteOf>
Tally tally(const Request& round, VoteOf&& voteOf) {
  Tally result;
  for (const Answer& answer : round.answers()) {
    const Vote vote = voteOf(answer);
    result.yes += vote == Vote::yes;
    result.no += vote == Vote::no;
    result.open += answer.state == Answer::State::waiting || answer.state == Answer::State::late;
    result.lost += isLost(answer);
  }
  return result;
}

/// Whether no open vote can change any more whether there is a quorum of yes.
inline bool isDecided(const Tally& votes, std::size_t quorum) {
  return votes.yes >= quorum || votes.yes + votes.open < quorum;
}

}  // namespace lockkeeper::redis
