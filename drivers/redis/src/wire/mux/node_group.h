#pragma once

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockkeeper/environment.h"
#include "lockkeeper/redis/redis_options.h"
#include "lockkeeper/stream/shared_poll.h"
#include "wire/mux/node.h"
#include "wire/protocol/request.h"

namespace lockkeeper::redis {

/// The nodes of a Multiplexer and what is done on their sockets: of the threads that wait, one polls all
/// connections, those that are being made too, and hands out the replies; one writes what all have added.
/// Every call needs the mutex: hold a Lock.
class NodeGroup {
 public:
  /// As Multiplexer::Admit.
  using Admit = std::function<std::string(std::size_t node, const ServerFacts& facts, Instant now)>;

  /// Holds the mutex. At its end, and without the mutex, posted commands hear what became of them.
  class Lock : public SharedPoll::Lock {
   public:
    explicit Lock(NodeGroup& group) : SharedPoll::Lock(group.poll_), group_(group) {}
    ~Lock();

   private:
    NodeGroup& group_;
  };

  NodeGroup(const std::vector<RedisOptions>& nodes, const Environment& environment, Admit admit,
            const DialRules& rules);
  NodeGroup(const NodeGroup&) = delete;
  NodeGroup& operator=(const NodeGroup&) = delete;
  ~NodeGroup();

  std::size_t size() const { return nodes_.size(); }
  Node& operator[](std::size_t index) { return nodes_[index]; }
  const Node& operator[](std::size_t index) const { return nodes_[index]; }
  auto begin() { return nodes_.begin(); }
  auto end() { return nodes_.end(); }

  std::chrono::milliseconds ioTimeout() const { return ioTimeout_; }
  Instant now() const { return clock_.now(); }

  /// Reads what has come since somebody polled last, before any node is judged by it, and begins to connect
  /// where that is due. Returns the time, which has gone on.
  Instant catchUp(Lock& lock, Instant now);
  /// Whether an answer is overdue, as far as has been read: one that came after a pause may be there, unread.
  bool silent(const Node& node, Instant now) const { return node.silent(std::min(now, polledUntil_)); }

  /// Writes, polls and hands out replies, or sleeps while another thread does, until `done()` or `until`.
  template <class Done>
  void wait(Lock& lock, SharedPoll::Waiter& waiter, Instant until, Done done) {
    bool resumed = false;
    poll_.wait(lock, waiter, until, done, [&] {
      if (!std::exchange(resumed, true)) resumeDials();
      flush(lock);
      return done() ? until : pollOnce(lock, until);
    });
  }

  /// Hands to the sockets what they take. When `own` is finished, the rest is left to the thread that polls.
  void flush(Lock& lock, const Request* own = nullptr);
  /// The same, unless the thread that polls is about to do it.
  void flushUnlessPollerWill(Lock& lock);

  /// Ends the node's connection. What is under way on it is finished without replies, for `why`.
  void disconnect(Node& node, ErrorCode code, std::string_view why) noexcept;

  /// Sends a command to the only node, which must be there. False: too many are under way already.
  bool post(const Request& request, std::unique_ptr<Posted> posted, Instant now);
  /// Waits until as many posted commands are finished as were posted by now, or until `deadline`.
  void awaitPosted(Lock& lock, Instant deadline);
  bool hasPosted() const { return posted_ != postedFinished_; }

 private:
  struct Watched;

  void resumeDials();
  Instant pollOnce(Lock& lock, Instant until);
  Instant watchAll();
  void take(Watched& watched, Instant now) noexcept;
  void takeDial(Node& node, Watched& watched);
  void takeReplies(Node& node, Instant now);
  void finish(Request& request, Answer& answer, Answer::State state);
  void finish(std::unique_ptr<Posted> posted);
  bool takeOutput();

  Clock& clock_;
  const Admit admit_;
  const std::chrono::milliseconds ioTimeout_;
  SharedPoll poll_;
  std::deque<Node> nodes_;
  std::uint64_t connections_ = 0;     // made so far
  std::uint64_t posted_ = 0;          // commands so far
  std::uint64_t postedFinished_ = 0;  // of them
  PostedList finishedPosted_;         // to be told
  std::vector<SharedPoll::Waiter*> awaitingPosted_;

  Instant polledUntil_ = Instant::min();
  std::vector<Watched> watched_;  // of the thread that polls, with polled_
  std::vector<pollfd> polled_;
  bool flushing_ = false;
  std::vector<Watched> flushed_;  // of the thread that writes
};

}  // namespace lockkeeper::redis
