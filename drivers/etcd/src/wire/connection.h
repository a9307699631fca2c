#pragma once

#include <poll.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "lockkeeper/driver/clock.h"
#include "lockkeeper/stream/stream.h"
#include "wire/http_reply.h"

namespace lockkeeper::etcd {

/// One HTTP connection to one member: one request at a time, and its reply. No call blocks, so that one
/// thread may attend to several. One thread at a time.
class Connection {
 public:
  /// Begins to connect. May throw StreamBroken.
  Connection(std::size_t member, std::string host, const Poco::Net::SocketAddress& address,
             Poco::Net::Context::Ptr tls)
      : member_(member), stream_(std::move(host), address, std::move(tls)) {}

  /// Which member it leads to.
  std::size_t member() const { return member_; }

  /// Takes a request: the POST of `body`, with `fields`, each of which ends with CRLF. It is sent after the
  /// reply to one whose reply was left has come.
  void post(std::string_view path, std::string_view fields, std::string_view body);

  /// Goes on as far as it can, until `until` if the server sends and sends, and takes in one piece of what
  /// has come at least. True once the reply is complete. Throws StreamBroken, and ConfigError for a
  /// certificate that is not right.
  bool advance(const Clock& clock, Instant until);

  /// What advance() waits for, unless it has more to do.
  pollfd awaited() const;
  /// The last advance() was over before it had read what has come.
  bool hasMore() const { return more_; }

  bool connected() const { return connected_; }
  /// Whether the first byte of the request was given to the system, and when: before that.
  bool sent() const { return sent_; }
  Instant sentAt() const { return sentAt_; }

  HttpReply& reply() { return reply_; }

  /// The request was sent to its end, and nobody waits for its reply; the next one finds it.
  void leaveReply() { leftReply_ = true; }
  bool allSent() const { return sent_ && out_.empty(); }

  /// Whether the next request may be sent on it.
  bool usable() const { return leftReply_ || (reply_.reusable() && !stream_.readable()); }
  /// Whether a reply that was left has still to be read.
  bool hasLeftReply() const { return leftReply_; }

 private:
  bool receive(const Clock& clock, Instant until);

  const std::size_t member_;
  Stream stream_;
  HttpReply reply_;
  std::string out_;
  Instant sentAt_{};
  bool connected_ = false;
  bool sent_ = false;
  bool leftReply_ = false;
  bool more_ = false;
};

/// For poll(): the milliseconds from `now` until `until`.
int pollTime(Instant until, Instant now);

}  // namespace lockkeeper::etcd
