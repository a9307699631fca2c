#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockkeeper/driver/clock.h"
#include "lockkeeper/error.h"
#include "wire/protocol/request.h"

namespace lockkeeper::redis {

class Round;

/// What one node was asked.
class Ballot : public Request {
 public:
  Ballot(Round* asking, std::size_t replies) : Request(replies), round(asking) {}
  using Request::failure;
  using Request::failureText;
  using Request::finished;

  Round* round;  ///< Null when nobody waits for the answer any more.
  Instant answeredAt{};
};

/// One question to all nodes, or some, and what each has answered. Belongs to one caller. Fill in the first
/// part, then give it to NodeGroup::ask().
class Round {
 public:
  enum class State {
    leftOut,     ///< Not asked, for `why`.
    asked,       ///< While NodeGroup::ask() runs.
    answered,    ///< The ballot has its replies.
    failed,      ///< Asked, but it will not answer, for `why`.
    unanswered,  ///< Asked, but the round was over first.
  };
  struct Seat {
    State state = State::leftOut;
    std::unique_ptr<Ballot> ballot;  ///< When answered or failed.
    ErrorCode code = ErrorCode::storeUnavailable;
    std::string why;

    /// It may answer yet.
    bool open() const { return state == State::asked && !ballot->finished(); }
    /// Null when there is none.
    const Ballot* answer() const {
      return ballot && ballot->finished() && !ballot->failure() ? ballot.get() : nullptr;
    }
  };

  explicit Round(std::size_t nodes) : invited(nodes, true), seats(nodes) {}
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;

  Request wire;               ///< The commands, the same for each node.
  std::vector<bool> invited;  ///< Which nodes to ask.
  bool takesVotes = false;    ///< Only nodes that may vote, and none at all when they make no quorum.
  bool needsQuorum = true;    ///< Worth waiting for connections.
  bool mustArrive = false;    ///< Nodes that do not answer now get it when they are there again.
  /// Whether the answers so far settle it; without, all that were asked are waited for. Called under the
  /// group's mutex, on any thread.
  std::function<bool(const Round&)> settled;

  // From here on, what ask() has found out.
  std::vector<Seat> seats;
  Instant startedAt{};
  Instant sentAt{};  ///< Before the first byte was sent.

  bool over() const {
    return (settled && settled(*this)) ||
           std::none_of(seats.begin(), seats.end(), [](const Seat& seat) { return seat.open(); });
  }

  std::condition_variable* waker = nullptr;  ///< While its caller sleeps.
};

}  // namespace lockkeeper::redis
