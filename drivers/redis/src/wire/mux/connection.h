#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "wire/dial/stream.h"
#include "wire/protocol/request.h"
#include "wire/protocol/resp.h"

namespace lockkeeper::redis {

/// A stream that is ready for commands, and the requests that are on their way on it. What its owner's mutex
/// guards; the stream, `sending` and the reader's room belong to whoever has said that it writes or reads.
struct Connection {
  /// A request whose replies are due. Those of a connection are in the order of their commands.
  struct Pending {
    Request* request;  // null when its caller has given up: the replies are read and dropped
    std::size_t answered = 0;
    std::size_t replies = 0;
    Instant sentAt;
    Instant dueAt;
    bool handedOver = false;  // to the socket, perhaps only in part
  };

  explicit Connection(std::unique_ptr<Stream> connected) : stream(std::move(connected)) {}

  /// Puts commands that get so many replies in line; `request`, when there is one, gets them.
  void add(Request* request, std::string_view commands, std::size_t replies, Instant now, Instant dueAt);

  /// Moves what is not handed over yet to `sending`, which must be empty.
  void takeOut();

  /// The next request whose replies are all there; null when there is none yet. Throws ProtocolError.
  Request* nextAnswered();

  /// Whether a request that was sent by then still misses replies.
  bool isLate(Instant sentBefore) const { return !pending.empty() && pending.front().sentAt <= sentBefore; }

  /// The caller of `request` has left: its replies will be dropped.
  void forget(const Request& request);

  /// Ends the connection. Requests that were handed over fail with `code`, the others were certainly not
  /// sent. `tell` is called for each when it is finished, and may destroy it.
  template <class Tell>
  void end(ErrorCode code, const std::string& text, Tell&& tell) {
    ended = true;
    stream->shutdown();
    for (const Pending& each : pending) {
      if (each.request == nullptr) continue;
      fail(*each.request, each.handedOver ? code : ErrorCode::storeUnavailable, text);
      tell(*each.request);
    }
    pending.clear();
    out.clear();
  }

  const std::unique_ptr<Stream> stream;
  std::deque<Pending> pending;
  std::string out;      // the commands that are not handed over yet
  std::string sending;  // those that are being sent
  ReplyReader reader;
  Reply dropped;  // the last reply that nobody waited for
  Instant lastUse{};
  bool writing = false;
  bool reading = false;
  bool ended = false;

 private:
  static void fail(Request& request, ErrorCode code, const std::string& text);
};

}  // namespace lockkeeper::redis
