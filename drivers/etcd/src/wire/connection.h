#pragma once

#include <poll.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockkeeper/base/clock.h"
#include "lockkeeper/stream/stream.h"
#include "wire/http_reply.h"
#include "wire/member_host.h"

namespace lockkeeper::etcd {

/// One HTTP connection to one member: one request at a time, and its reply. No call blocks, so that one
/// thread may attend to several. One thread at a time.
class Connection {
 public:
  /// Begins to look up `host`, which must outlive it.
  Connection(std::size_t member, MemberHost& host, Poco::Net::Context::Ptr tls, Instant now)
      : member_(member), host_(host), tls_(std::move(tls)), lookup_(host.lookUp(now)) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Which member it leads to.
  std::size_t member() const { return member_; }

  /// Takes a request: the POST of `body`, with `fields`, each of which ends with CRLF. It is sent after the
  /// reply to one whose reply was left has come.
  void post(std::string_view path, std::string_view fields, std::string_view body);

  /// Connects to one of the host's addresses, whichever answers, and goes on as far as it can, until `until`
  /// if the server sends and sends, and takes in one piece of what has come at least. True once the reply is
  /// complete. Throws StreamBroken, and ConfigError for a certificate that is not right.
  bool advance(const Clock& clock, Instant until);

  /// What advance() waits for, unless it has more to do.
  pollfd awaited() const;
  /// The last advance() was over before it had read what has come.
  bool hasMore() const { return more_; }

  /// Nobody answers where it leads: new connections to the host begin with another address.
  void avoidAddress() noexcept {
    if (!addresses_.empty()) host_.passOn(turn_);
  }

  bool connected() const { return connected_; }
  /// Whether the first byte of the request was given to the system, and when: before that.
  bool sent() const { return sent_; }
  Instant sentAt() const { return sentAt_; }

  HttpReply& reply() { return reply_; }

  /// The request was sent to its end, and nobody waits for its reply; the next one finds it.
  void ignoreReply() { ignoredReply_ = true; }
  bool allSent() const { return sent_ && out_.empty(); }

  /// Whether the next request may be sent on it. Takes in what has come of a reply that was left: the end of
  /// the connection may be behind it.
  bool usable(const Clock& clock) noexcept;
  /// Whether a reply that was left has still to be read.
  bool hasIgnoredReply() const { return ignoredReply_; }

 private:
  /// To the next address when one refuses; throws StreamBroken when all have.
  bool connect();
  bool receive(const Clock& clock, Instant until);
  /// Whether nothing has come that nobody asked for, such as the end of the connection.
  bool clean() const { return reply_.reusable() && !stream_->readable(); }

  const std::size_t member_;
  MemberHost& host_;
  const Poco::Net::Context::Ptr tls_;
  const std::shared_ptr<HostLookup> lookup_;
  std::vector<Poco::Net::SocketAddress> addresses_;  // once the lookup is done
  std::size_t turn_ = 0;                             // modulo their number: the one that is tried
  std::size_t refusals_ = 0;
  std::optional<Stream> stream_;  // once the addresses are known
  HttpReply reply_;
  std::string out_;
  Instant sentAt_{};
  bool connected_ = false;
  bool sent_ = false;
  bool ignoredReply_ = false;
  bool more_ = false;
};

}  // namespace lockkeeper::etcd
