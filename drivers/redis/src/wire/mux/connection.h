#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lockkeeper/stream/stream.h"
#include "wire/mux/posted.h"
#include "wire/protocol/request.h"
#include "wire/protocol/resp.h"

namespace lockkeeper::redis {

/// A stream that is ready for commands, and the requests that are on their way on it, in the order of their
/// commands. Guarded by the multiplexer's mutex; the stream, `sending` and the reader's room belong to the
/// thread that writes or reads at the moment.
struct Connection {
  /// Commands whose replies are due.
  struct Pending {
    Request* request;  // null when nobody waits for the replies (any more)
    /// Without `request`: what must be sent again unless the node has done it,
    std::shared_ptr<const std::string> mustArrive{};
    std::unique_ptr<Posted> posted{};  ///< or where the only reply goes.
    std::size_t bytes = 0;
    std::size_t replies = 0;
    std::size_t answered = 0;
    Instant since{};       // added, or handed to the socket
    Instant dueAt{};       // an answer that comes later is late
    bool sent = false;     // handed to the socket, perhaps only in part
    bool refused = false;  // without `request`: the node has not done it, for a reason that passes
  };

  Connection(std::unique_ptr<Stream> connected, std::size_t ofNode, std::uint64_t itsNumber, Instant now)
      : stream(std::move(connected)), node(ofNode), number(itsNumber), lastUse(now), lastProgress(now) {}

  void add(Pending commands, std::string_view bytes, Instant now);

  bool hasOutput() const { return !sending.empty() || !out.empty(); }
  /// Nothing is half sent, and the server has something to answer.
  bool replyIsDue() const { return sending.empty() && !pending.empty() && pending.front().sent; }
  /// Puts what there is to send into `sending`, unless something is in it already.
  void takeOut(Instant now);

  /// Hands to the socket what it takes of `sending`. By the writer, without the mutex.
  std::size_t sendSome();
  /// The socket has taken so much of `sending`, since takeOut().
  void sent(std::size_t bytes);

  /// The next commands whose replies are all there. Throws ProtocolError.
  std::optional<Pending> nextAnswered(Instant now);

  /// The caller of `request` leaves. True: what it asked was not sent, and will not be. Otherwise its replies
  /// will be dropped; with `mustArrive` it stays in line in any case.
  bool abandon(const Request& request, bool mustArrive);

  /// When the server is too late with its replies or with taking what we send, if it goes on so.
  Instant lateAt(std::chrono::nanoseconds allowance) const;

  const std::unique_ptr<Stream> stream;
  const std::size_t node;
  const std::uint64_t number;  // no other connection of the multiplexer has it
  std::deque<Pending> pending;
  std::string out;            // the commands that are not handed over yet
  std::string sending;        // those that are being sent
  std::size_t sentBytes = 0;  // of `sending`
  ReplyReader reader;
  Instant lastUse;
  Instant lastProgress;    // an answer has come, or a full socket has taken more
  bool answered = false;   // something that was asked on it
  bool blocked = false;    // the socket takes no more for now
  bool notMaster = false;  // the server has said so
  bool disconnected = false;

 private:
  Instant takenOut_{};
  Reply dropped_;  // the last reply that nobody waited for
};

/// Reads what has come. From TLS all of it, since what is decrypted already wakes up no poll.
void receiveAll(Stream& stream, ReplyReader& reader);

}  // namespace lockkeeper::redis
