#pragma once

#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/StreamSocket.h>

#include <cstddef>
#include <istream>
#include <streambuf>
#include <string>

namespace lockkeeper::poco {

/// What the filters may be set to read of a body, at most.
inline constexpr std::size_t mostBody = std::size_t{16} << 20;

/// A body, or when it is too long its beginning, the rest of which is still in the stream.
struct Body {
  std::string bytes;
  bool whole = true;
};

/// Reads a body of at most `most` bytes. Blocks for what the client has not sent yet, within the server's
/// time limits.
Body readBody(Poco::Net::HTTPServerRequest& request, std::size_t most);

/// Forgets what is left of the body, since a client that still sends might not see its answer. Only as far as
/// that costs the server little: up to 1 MiB, and what comes within half a second. False when there is more.
bool skipBody(Poco::Net::HTTPServerRequest& request);

/// The socket of a request's connection; null for one that no Poco server has received.
Poco::Net::StreamSocket* socketOf(Poco::Net::HTTPServerRequest& request);

/// First these bytes, then what is left of a stream.
class ReplayBuffer final : public std::streambuf {
 public:
  ReplayBuffer(std::string bytes, std::istream& rest);

 private:
  int_type underflow() override;

  std::string bytes_;
  std::istream& rest_;
};

/// A request whose body was read, for a handler that wants to read it, too. `original` must outlive it.
class ReplayedRequest final : public Poco::Net::HTTPServerRequest {
 public:
  ReplayedRequest(Poco::Net::HTTPServerRequest& original, std::string body);
  /// The same for a handler whose answer goes to `response`.
  ReplayedRequest(Poco::Net::HTTPServerRequest& original, std::string body,
                  Poco::Net::HTTPServerResponse& response);

  Poco::Net::HTTPServerRequest& original() const { return original_; }

  std::istream& stream() override { return stream_; }
  const Poco::Net::SocketAddress& clientAddress() const override { return original_.clientAddress(); }
  const Poco::Net::SocketAddress& serverAddress() const override { return original_.serverAddress(); }
  const Poco::Net::HTTPServerParams& serverParams() const override { return original_.serverParams(); }
  Poco::Net::HTTPServerResponse& response() const override { return response_; }
  bool secure() const override { return original_.secure(); }

 private:
  Poco::Net::HTTPServerRequest& original_;
  Poco::Net::HTTPServerResponse& response_;
  ReplayBuffer body_;
  std::istream stream_;
};

}  // namespace lockkeeper::poco
