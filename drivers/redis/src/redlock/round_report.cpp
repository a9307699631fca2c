#include "redlock/round_report.h"

#include <algorithm>

#include "wire/protocol/server_error.h"

namespace lockkeeper::redis {

namespace {

bool isSetUpWrongly(const Round::Seat& seat) {
  if (const Reply* const error = errorIn(seat)) return faultOf("", *error).code == ErrorCode::config;
  return seat.state != Round::State::answered && seat.code == ErrorCode::config;
}

}  // namespace

const Reply* errorIn(const Round::Seat& seat) {
  const Ballot* const answer = seat.answer();
  for (std::size_t index = 0; answer != nullptr && index < answer->size(); ++index) {
    if (answer->reply(index).kind == ReplyKind::error) return &answer->reply(index);
  }
  return nullptr;
}

NodeOutcome outcomeOf(const Round::Seat& seat, Vote vote) {
  if (vote == Vote::yes) return NodeOutcome::agreed;
  if (vote == Vote::no) return NodeOutcome::refused;
  if (seat.state == Round::State::leftOut) return NodeOutcome::leftOut;
  return seat.state == Round::State::unanswered ? NodeOutcome::unanswered : NodeOutcome::failed;
}

std::string reasonOf(const std::string& store, const Round::Seat& seat) {
  if (const Reply* const error = errorIn(seat)) return faultOf(store, *error).text;
  if (seat.answer() != nullptr) return store + " sent a reply of an unexpected form";
  return seat.why;
}

std::string reasons(const NodeGroup& group, const Round& round) {
  std::string all;
  for (std::size_t index = 0; index < group.size(); ++index) {
    const Round::Seat& seat = round.seats[index];
    if (seat.answer() != nullptr && errorIn(seat) == nullptr) continue;
    const std::string reason = reasonOf(group.store(index), seat);
    if (!reason.empty()) all.append(all.empty() ? "" : "; ").append(reason);
  }
  return all.empty() ? "no time was left to ask" : all;
}

void throwNoQuorum(const std::string& store, const NodeGroup& group, const Round& round) {
  const auto mistakes = std::count_if(round.seats.begin(), round.seats.end(), isSetUpWrongly);
  const bool hopeless = static_cast<std::size_t>(mistakes) > group.size() - group.quorum();
  throwError(hopeless ? ErrorCode::config : ErrorCode::storeUnavailable,
             store + ": no quorum of " + std::to_string(group.quorum()) + " nodes: " + reasons(group, round));
}

}  // namespace lockkeeper::redis
