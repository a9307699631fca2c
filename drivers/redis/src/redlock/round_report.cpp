#include "redlock/round_report.h"

#include <algorithm>

#include "wire/protocol/server_error.h"

namespace lockkeeper::redis {

namespace {

bool isSetUpWrongly(const Answer& answer) {
  if (const Reply* const error = errorIn(answer)) return faultOf("", *error).code == ErrorCode::config;
  return !answer.complete() && answer.code == ErrorCode::config;
}

}  // namespace

const Reply* errorIn(const Answer& answer) {
  if (!answer.complete()) return nullptr;
  const auto error = std::find_if(answer.replies.begin(), answer.replies.end(),
                                  [](const Reply& reply) { return reply.kind == ReplyKind::error; });
  return error == answer.replies.end() ? nullptr : &*error;
}

NodeOutcome outcomeOf(const Answer& answer, Vote vote) {
  if (vote == Vote::yes) return NodeOutcome::agreed;
  if (vote == Vote::no) return NodeOutcome::refused;
  if (answer.state == Answer::State::notAsked) return NodeOutcome::leftOut;
  return answer.state == Answer::State::late ? NodeOutcome::unanswered : NodeOutcome::failed;
}

std::string reasonOf(const std::string& store, const Answer& answer) {
  if (const Reply* const error = errorIn(answer)) return faultOf(store, *error).text;
  if (answer.complete()) return store + " sent a reply of an unexpected form";
  return answer.why;
}

std::string reasons(const Multiplexer& nodes, const Request& round) {
  std::string all;
  for (std::size_t index = 0; index < nodes.size(); ++index) {
    const Answer& answer = round.answers()[index];
    if (answer.complete() && errorIn(answer) == nullptr) continue;
    const std::string reason = reasonOf(nodes.store(index), answer);
    if (!reason.empty()) all.append(all.empty() ? "" : "; ").append(reason);
  }
  return all.empty() ? "no time was left to ask" : all;
}

void throwNoQuorum(const std::string& store, const Multiplexer& nodes, const Request& round,
                   std::size_t quorum, bool isUndone) {
  const auto& answers = round.answers();
  const auto mistakes = std::count_if(answers.begin(), answers.end(), isSetUpWrongly);
  const bool hopeless = static_cast<std::size_t>(mistakes) > nodes.size() - quorum;
  const std::string text =
      store + ": no quorum of " + std::to_string(quorum) + " nodes: " + reasons(nodes, round);
  if (!hopeless && !isUndone) throw WithdrawalUnknown(text + "; the claim may still reach a node");
  throwError(hopeless ? ErrorCode::config : ErrorCode::storeUnavailable, text);
}

}  // namespace lockkeeper::redis
