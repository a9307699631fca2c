#pragma once

#include <condition_variable>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/driver/clock.h"
#include "lockkeeper/error.h"
#include "wire/protocol/resp.h"

namespace lockkeeper::redis {

class Channel;

/// Commands that are sent together, and their replies. Belongs to one caller; must not be touched between
/// Channel::submit() and await(). Destroying it in between abandons it.
class Request {
 public:
  Request() = default;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request();

  /// Adds a command. Only before submit().
  void add(std::span<const std::string_view> words);
  void add(std::initializer_list<std::string_view> words) { add(std::span(words.begin(), words.size())); }

  /// Makes it as new, for another submit(). Not between submit() and await().
  void clear();

  /// All that was added, as it is sent.
  const std::string& commands() const { return commands_; }

  /// How many commands were added.
  std::size_t size() const { return replies_.size(); }

  /// The reply to the command added as the index-th one. Only after await().
  const Reply& reply(std::size_t index) const { return replies_[index]; }

  /// A moment before the first byte was sent, and after the connection was made. Only after submit().
  Instant sentAt() const { return sentAt_; }

 protected:
  // For those that are asked on several connections at once, by a NodeGroup.
  explicit Request(std::size_t replies) : replies_(replies) {}
  bool finished() const { return finished_; }
  const std::optional<ErrorCode>& failure() const { return failure_; }
  const std::string& failureText() const { return failureText_; }

 private:
  friend class Channel;
  friend struct Connection;

  std::string commands_;
  std::vector<Reply> replies_;
  Instant sentAt_{};
  Channel* channel_ = nullptr;                // while submitted
  bool finished_ = false;                     // every reply is there, or failure_ is set
  std::condition_variable* waker_ = nullptr;  // while its caller waits
  std::optional<ErrorCode> failure_;
  std::string failureText_;
};

}  // namespace lockkeeper::redis
