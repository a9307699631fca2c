#include "ledger/group_settling.h"

#include <algorithm>

#include "combine/until_known.h"

namespace lockkeeper::inventory {

void GroupSettling::run() {
  writeUntilKnown(database_, calls_, latest_, [this] { settle(); });
}

void GroupSettling::settle() {
  ReservationWork work(database_, who_, latest_);
  work.stock.hold(calls_.front()->skus);
  std::vector<std::string> ids;
  for (const PlacedSettlement* each : calls_) ids.push_back(each->id);
  std::map<std::string, Lines> known;
  for (ReservedLine& each : work.reservations.lines(ids)) known[each.id].push_back(std::move(each));
  ended_.clear();
  extended_.clear();
  for (PlacedSettlement* each : calls_) {
    try {
      each->failure = nullptr;
      answer(*each, known[each->id]);
    } catch (const ConfigError&) {
      each->failure = std::current_exception();
    }
  }
  for (const auto& [state, lines] : ended_) work.end(lines, state);
  work.extend(extended_);
  for (PlacedSettlement* each : calls_) each->inDoubt = !each->failure && !each->moved;
  work.transaction.commit();
}

/// One that has expired ends here.
void GroupSettling::answer(PlacedSettlement& call, Lines& lines) {
  const std::vector<std::string>& held = calls_.front()->skus;
  call.moved = std::ranges::any_of(
      lines, [&](const ReservedLine& each) { return std::ranges::find(held, each.sku) == held.end(); });
  if (call.moved) return;
  if (lines.empty()) {  // Somebody has deleted it meanwhile.
    call.result = {.state = ReservationState::unknownId};
    return;
  }
  ReservationState state = stateOf(lines);
  if (state == ReservationState::held && call.target != ReservationState::held) {
    call.inDoubt = false;  // No former COMMIT has ended it.
    state = call.target;
  }
  if (state != ReservationState::held) {
    end(lines, state);
  } else if (lines.front().left < call.ttl) {
    for (ReservedLine& each : lines) each.left = call.ttl;
    extended_.insert(extended_.end(), lines.begin(), lines.end());
  }
  call.result = {.state = state, .lines = cartOf(lines)};
}

void GroupSettling::end(Lines& lines, ReservationState state) {
  for (ReservedLine& each : lines) {
    if (each.state != ReservationState::held) continue;
    ended_[state].push_back(each);
    each.state = state;
  }
}

}  // namespace lockkeeper::inventory
