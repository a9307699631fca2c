#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/error.h"
#include "lockkeeper/stream/shared_poll.h"
#include "wire/protocol/resp.h"

namespace lockkeeper::redis {

/// What one node has said to a request.
struct Answer {
  enum class State {
    notAsked,  ///< Nothing was sent to it, for `why`.
    waiting,   ///< It was asked.
    complete,  ///< The replies are there.
    failed,    ///< It was asked, but the replies will not come, for `why`.
    late,      ///< It was asked, and had not answered when the caller left.
  };

  State state = State::notAsked;
  std::vector<Reply> replies{};  ///< One for each command, when complete. Error replies are replies.
  Instant receivedAt{};
  std::uint64_t connection = 0;                  ///< Which connection it was asked on.
  ErrorCode code = ErrorCode::storeUnavailable;  ///< With `why`.
  std::string why{};

  bool complete() const { return state == State::complete; }
};

/// Commands that are sent together to one node or to several, and what each has answered. Belongs to one
/// caller, and must not be touched while Multiplexer::ask() runs.
class Request {
 public:
  explicit Request(std::size_t nodes = 1) : answers_(nodes) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  /// Adds a command.
  void add(std::span<const std::string_view> words) {
    appendCommand(commands_, words);
    ++size_;
  }
  void add(std::initializer_list<std::string_view> words) { add(std::span(words.begin(), words.size())); }
  /// Likewise, in groups: `first`, then `second`, then `third`.
  void add(std::span<const std::string_view> first, std::span<const std::string_view> second,
           std::span<const std::string_view> third);

  /// Takes the commands out, so that others can be asked.
  void clear() {
    commands_.clear();
    size_ = 0;
  }

  /// Puts ASKING before each command, so that a node of a Redis Cluster serves slots that are on their way to
  /// it. When the only node has been asked, dropAskingReplies() leaves the replies to the others.
  /// @{
  void addAsking();
  void dropAskingReplies();
  /// @}

  /// How many bytes of commands it has room for without an allocation.
  std::size_t capacity() const noexcept { return commands_.capacity(); }
  /// Whether replies may still come: it was started, and an exception has kept finish() from being called.
  bool isAsked() const noexcept { return waiting_ > 0; }

  /// All that was added, as it is sent.
  const std::string& commands() const { return commands_; }
  /// How many commands were added.
  std::size_t size() const { return size_; }

  /// From here on, what ask() has found out. One answer for each node.
  const std::vector<Answer>& answers() const { return answers_; }
  /// Of the only node: the reply to the index-th command.
  const Reply& reply(std::size_t index) const { return answers_.front().replies[index]; }
  Reply& reply(std::size_t index) { return answers_.front().replies[index]; }
  /// Of the only node: which connection it was asked on.
  std::uint64_t connection() const { return answers_.front().connection; }
  Instant startedAt() const { return startedAt_; }
  /// A moment before the first byte was sent, and after the connections were made.
  Instant sentAt() const { return sentAt_; }

 private:
  friend class Multiplexer;
  friend class NodeGroup;
  friend struct Connection;

  /// Nothing more is waited for.
  bool over() const { return waiting_ == 0 || (enough_ != nullptr && *enough_ && (*enough_)(*this)); }

  std::string commands_;
  std::size_t size_ = 0;
  std::vector<Answer> answers_;
  Instant startedAt_{};
  Instant sentAt_{};
  std::size_t waiting_ = 0;  // for so many answers
  const std::function<bool(const Request&)>* enough_ = nullptr;
  SharedPoll::Waiter waiter_;
};

}  // namespace lockkeeper::redis
