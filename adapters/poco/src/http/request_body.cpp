#include "http/request_body.h"

#include <Poco/Clock.h>
#include <Poco/Exception.h>
#include <Poco/Net/HTTPServerRequestImpl.h>

#include <algorithm>
#include <utility>

namespace lockkeeper::poco {

using Poco::Net::HTTPServerRequest;

namespace {

constexpr std::streamsize partBytes = 4096;
constexpr std::streamsize mostSkipped = std::streamsize{1} << 20;
constexpr Poco::Clock::ClockDiff longestSkipping = 500'000;  // µs
constexpr Poco::Clock::ClockDiff shortestTimeout = 1'000;    // 0 would be none

// Without either there is none (RFC 9112), though Poco would read until the client hangs up.
bool hasBody(const HTTPServerRequest& request) {
  return request.hasContentLength() || request.getChunkedTransferEncoding();
}

}  // namespace

Body readBody(HTTPServerRequest& request, std::size_t most) {
  Body body;
  if (!hasBody(request)) return body;
  if (request.hasContentLength() && request.getContentLength64() > static_cast<Poco::Int64>(most)) {
    body.whole = false;
    return body;
  }
  char part[partBytes];
  std::istream& stream = request.stream();
  do {
    stream.read(part, sizeof part);
    body.bytes.append(part, static_cast<std::size_t>(stream.gcount()));
  } while (stream && body.bytes.size() <= most);
  body.whole = body.bytes.size() <= most;
  return body;
}

bool skipBody(HTTPServerRequest& request) {
  if (!hasBody(request)) return true;
  std::istream& stream = request.stream();
  Poco::Net::StreamSocket* socket = socketOf(request);
  if (socket == nullptr) return stream.ignore(mostSkipped + 1).eof();
  if (request.hasContentLength() && request.getContentLength64() > mostSkipped) return false;
  const Poco::Timespan usual = socket->getReceiveTimeout();
  const Poco::Clock begun;
  std::streamsize skipped = 0;
  bool ended = false;
  while (!ended && skipped <= mostSkipped && !begun.isElapsed(longestSkipping)) {
    // Byte by byte through the buffer: each look at the connection has what is left of the time.
    socket->setReceiveTimeout(Poco::Timespan(std::max(longestSkipping - begun.elapsed(), shortestTimeout)));
    ended = stream.peek() == std::istream::traits_type::eof();
    const std::streamsize waiting = std::max<std::streamsize>(stream.rdbuf()->in_avail(), 0);
    if (!ended) stream.ignore(waiting);
    skipped += waiting;
  }
  socket->setReceiveTimeout(usual);
  return stream.eof() && !stream.bad();  // bad: nothing came in time
}

Poco::Net::StreamSocket* socketOf(HTTPServerRequest& request) {
  if (auto* replayed = dynamic_cast<ReplayedRequest*>(&request)) return socketOf(replayed->original());
  auto* received = dynamic_cast<Poco::Net::HTTPServerRequestImpl*>(&request);
  return received == nullptr ? nullptr : &received->socket();
}

ReplayBuffer::ReplayBuffer(std::string bytes, std::istream& rest) : bytes_(std::move(bytes)), rest_(rest) {
  setg(bytes_.data(), bytes_.data(), bytes_.data() + bytes_.size());
}

ReplayBuffer::int_type ReplayBuffer::underflow() {
  if (gptr() == egptr()) {
    bytes_.resize(partBytes);
    rest_.read(bytes_.data(), partBytes);
    setg(bytes_.data(), bytes_.data(), bytes_.data() + rest_.gcount());
  }
  return gptr() == egptr() ? traits_type::eof() : traits_type::to_int_type(*gptr());
}

ReplayedRequest::ReplayedRequest(HTTPServerRequest& original, std::string body)
    : ReplayedRequest(original, std::move(body), original.response()) {}

ReplayedRequest::ReplayedRequest(HTTPServerRequest& original, std::string body,
                                 Poco::Net::HTTPServerResponse& response)
    : original_(original), response_(response), body_(std::move(body), original.stream()), stream_(&body_) {
  HTTPRequest::operator=(original);
}

}  // namespace lockkeeper::poco
