#include "redlock/redlock_votes.h"

#include <algorithm>
#include <array>
#include <vector>

#include "lock/lock_replies.h"
#include "wire/protocol/script.h"

namespace lockkeeper::redis {

namespace {

// A claim is either SET, perhaps with PTTL, or one call of the script.
bool isOfScript(const Reply& reply) { return reply.kind == ReplyKind::array; }

bool showSameClaim(const Answer& one, const Answer& other) {
  return one.replies[0].items[0].text == other.replies[0].items[0].text;
}

}  // namespace

void addClaim(Request& wire, const AcquireRequest& request, std::string_view value) {
  const std::string_view key = request.claim.key;
  const std::string length = std::to_string(request.ttl.count());
  if (request.resend) {
    Script::acquire().addTo(wire, Script::By::text, std::array{key},
                            std::array<std::string_view, 2>{value, length});
    return;
  }
  wire.add({"SET", key, value, "NX", "PX", length});
  if (request.waits) wire.add({"PTTL", key});
}

Vote claimVote(const Answer& answer) {
  if (!answer.complete()) return Vote::none;
  const Reply& reply = answer.replies[0];
  if (reply.kind == ReplyKind::error) return Vote::none;
  if (reply.kind == ReplyKind::status && reply.text == "OK") return Vote::yes;
  if (reply.kind == ReplyKind::nil) return Vote::no;
  if (!isOfScript(reply) || !isAcquireReply(reply)) return Vote::malformed;
  return reply.items[0].isInteger(1) ? Vote::yes : Vote::no;
}

std::optional<std::chrono::milliseconds> busyFor(const Answer& answer) {
  if (isOfScript(answer.replies[0])) return remainingIn(answer.replies[0].items[1]);
  return answer.replies.size() > 1 ? remainingIn(answer.replies[1]) : std::nullopt;
}

Vote flagVote(const Answer& answer, std::size_t index) {
  if (!answer.complete()) return Vote::none;
  const Reply& reply = answer.replies[index];
  if (reply.kind == ReplyKind::error) return Vote::none;
  if (!isFlag(reply)) return Vote::malformed;
  return reply.integer == 1 ? Vote::yes : Vote::no;
}

Vote holderVote(const Answer& answer) {
  if (!answer.complete() || answer.replies[0].kind == ReplyKind::error) return Vote::none;
  if (!isHolderReply(answer.replies[0])) return Vote::malformed;
  return answer.replies[0].kind == ReplyKind::nil ? Vote::no : Vote::yes;
}

std::size_t agreeing(const Request& round, const Answer& with) {
  const Vote vote = holderVote(with);
  if (vote != Vote::yes && vote != Vote::no) return 0;
  const auto agrees = [&](const Answer& other) {
    return holderVote(other) == vote && (vote == Vote::no || showSameClaim(other, with));
  };
  return static_cast<std::size_t>(std::count_if(round.answers().begin(), round.answers().end(), agrees));
}

std::optional<std::chrono::milliseconds> quorumRemaining(const Request& round, const Answer& with,
                                                         std::size_t quorum) {
  constexpr auto forEver = std::chrono::milliseconds::max();
  std::vector<std::chrono::milliseconds> ends;
  for (const Answer& other : round.answers()) {
    if (holderVote(other) != Vote::yes || !showSameClaim(other, with)) continue;
    ends.push_back(remainingIn(other.replies[0].items[1]).value_or(forEver));
  }
  std::sort(ends.rbegin(), ends.rend());
  return ends[quorum - 1] == forEver ? std::nullopt : std::optional(ends[quorum - 1]);
}

}  // namespace lockkeeper::redis
