#pragma once

#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerRequestImpl.h>
#include <Poco/Net/StreamSocket.h>

#include <chrono>
#include <cstddef>
#include <istream>
#include <streambuf>
#include <string>

#include "http/chunked_body.h"

namespace lockkeeper::poco {

/// What the filters may be set to read of a body, at most.
inline constexpr std::size_t mostBody = std::size_t{16} << 20;
inline constexpr std::chrono::milliseconds shortestBodyTimeout{10};
inline constexpr std::chrono::milliseconds longestBodyTimeout{std::chrono::hours{1}};

/// How a body was read.
enum class BodyEnd {
  whole,    ///< To its end.
  tooLong,  ///< There is more of it than was to be read.
  late,     ///< The rest has not come in time.
  cut,      ///< The client has gone before all of it was here.
  invalid,  ///< Its chunks are not valid: nobody knows where it ends.
};

/// A body, or its beginning, the rest of which is still in the stream.
struct Body {
  std::string bytes;
  BodyEnd end = BodyEnd::whole;
};

/// Reads a body of at most `most` bytes. Blocks for what the client has not sent yet, for `time` at most.
Body readBody(Poco::Net::HTTPServerRequest& request, std::size_t most, std::chrono::microseconds time);

/// Discards what is left of the body on the connection: up to 1 MiB, and what comes at once, right behind the
/// head. False when there is more, or when nobody knows where it ends.
bool skipBody(Poco::Net::HTTPServerRequest& request);

/// For a request that was answered before its body had come: ends the connection's answers, and discards for
/// a moment what the client still sends. A connection that is closed at once would be reset, and the client
/// might not see its answer.
void closeUnread(Poco::Net::HTTPServerRequest& request) noexcept;

/// The socket of a request's connection; null for one that no Poco server has received.
Poco::Net::StreamSocket* socketOf(Poco::Net::HTTPServerRequest& request);

/// First these bytes, then what is left of a stream, unless that is null.
class ReplayBuffer final : public std::streambuf {
 public:
  ReplayBuffer(std::string bytes, std::istream* rest);

 private:
  int_type underflow() override;

  std::string bytes_;
  std::istream* const rest_;
};

/// A request that stands for another one, with a body of its own. `original` must outlive it.
class BodyRequest : public Poco::Net::HTTPServerRequest {
 public:
  Poco::Net::HTTPServerRequest& original() const { return original_; }

  const Poco::Net::SocketAddress& clientAddress() const override { return original_.clientAddress(); }
  const Poco::Net::SocketAddress& serverAddress() const override { return original_.serverAddress(); }
  const Poco::Net::HTTPServerParams& serverParams() const override { return original_.serverParams(); }
  Poco::Net::HTTPServerResponse& response() const override { return response_; }
  bool secure() const override { return original_.secure(); }

 protected:
  BodyRequest(Poco::Net::HTTPServerRequest& original, Poco::Net::HTTPServerResponse& response);

 private:
  Poco::Net::HTTPServerRequest& original_;
  Poco::Net::HTTPServerResponse& response_;
};

/// A request whose body was read, for a handler that wants to read it, too.
class ReplayedRequest final : public BodyRequest {
 public:
  ReplayedRequest(Poco::Net::HTTPServerRequest& original, Body body);
  /// The same for a handler whose answer goes to `response`.
  ReplayedRequest(Poco::Net::HTTPServerRequest& original, Body body, Poco::Net::HTTPServerResponse& response);

  /// Whether nothing of the body is left on the connection, however much of it the handler reads.
  bool isRead() const;

  std::istream& stream() override { return stream_; }

 private:
  const bool whole_;
  ReplayBuffer body_;
  std::istream stream_;
};

/// A request from a connection whose body comes in chunks.
class ChunkedRequest final : public BodyRequest {
 public:
  explicit ChunkedRequest(Poco::Net::HTTPServerRequestImpl& original);

  bool isInvalid() const { return body_.isInvalid(); }
  std::istream& stream() override { return stream_; }

 private:
  ChunkedBody body_;
  std::istream stream_;
};

}  // namespace lockkeeper::poco
