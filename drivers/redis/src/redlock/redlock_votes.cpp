#include "redlock/redlock_votes.h"

#include <algorithm>
#include <array>
#include <vector>

#include "lock/lock_replies.h"
#include "wire/protocol/script.h"

namespace lockkeeper::redis {

namespace {

// A claim is either SET and PTTL, or one call of the script.
bool isBare(const Ballot& answer) { return answer.size() == 2; }

bool showSameClaim(const Round::Seat& one, const Round::Seat& other) {
  return one.answer()->reply(0).items[0].text == other.answer()->reply(0).items[0].text;
}

}  // namespace

void addClaim(Request& wire, std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
              bool resend) {
  const std::string length = std::to_string(ttl.count());
  if (resend) {
    Script::acquire().addTo(wire, Script::By::text, std::array{key},
                            std::array<std::string_view, 2>{value, length});
  } else {
    wire.add({"SET", key, value, "NX", "PX", length});
    wire.add({"PTTL", key});
  }
}

Vote claimVote(const Round::Seat& seat) {
  const Ballot* const answer = seat.answer();
  if (answer == nullptr) return Vote::none;
  const Reply& reply = answer->reply(0);
  if (reply.kind == ReplyKind::error) return Vote::none;
  if (isBare(*answer)) {
    if (reply.kind == ReplyKind::status && reply.text == "OK") return Vote::yes;
    return reply.kind == ReplyKind::nil ? Vote::no : Vote::nonsense;
  }
  if (!isAcquireReply(reply)) return Vote::nonsense;
  return reply.items[0].isInteger(1) ? Vote::yes : Vote::no;
}

std::optional<std::chrono::milliseconds> busyFor(const Round::Seat& seat) {
  const Ballot& answer = *seat.answer();
  return remainingIn(isBare(answer) ? answer.reply(1) : answer.reply(0).items[1]);
}

Vote flagVote(const Round::Seat& seat, std::size_t index) {
  const Ballot* const answer = seat.answer();
  if (answer == nullptr) return Vote::none;
  const Reply& reply = answer->reply(index);
  if (reply.kind == ReplyKind::error) return Vote::none;
  if (!isFlag(reply)) return Vote::nonsense;
  return reply.integer == 1 ? Vote::yes : Vote::no;
}

Vote holderVote(const Round::Seat& seat) {
  const Ballot* const answer = seat.answer();
  if (answer == nullptr || answer->reply(0).kind == ReplyKind::error) return Vote::none;
  if (!isHolderReply(answer->reply(0))) return Vote::nonsense;
  return answer->reply(0).kind == ReplyKind::nil ? Vote::no : Vote::yes;
}

std::size_t agreeing(const Round& round, const Round::Seat& with) {
  const Vote vote = holderVote(with);
  if (vote != Vote::yes && vote != Vote::no) return 0;
  const auto agrees = [&](const Round::Seat& seat) {
    return holderVote(seat) == vote && (vote == Vote::no || showSameClaim(seat, with));
  };
  return static_cast<std::size_t>(std::count_if(round.seats.begin(), round.seats.end(), agrees));
}

std::optional<std::chrono::milliseconds> quorumRemaining(const Round& round, const Round::Seat& with,
                                                         std::size_t quorum) {
  constexpr auto forEver = std::chrono::milliseconds::max();
  std::vector<std::chrono::milliseconds> ends;
  for (const Round::Seat& seat : round.seats) {
    if (holderVote(seat) != Vote::yes || !showSameClaim(seat, with)) continue;
    ends.push_back(remainingIn(seat.answer()->reply(0).items[1]).value_or(forEver));
  }
  std::sort(ends.rbegin(), ends.rend());
  return ends[quorum - 1] == forEver ? std::nullopt : std::optional(ends[quorum - 1]);
}

}  // namespace lockkeeper::redis
