#include "http/request_body.h"

#include <Poco/Clock.h>
#include <Poco/Exception.h>

#include <algorithm>
#include <array>
#include <utility>

#include "http/framing.h"

namespace lockkeeper::poco {

using Poco::Net::HTTPServerRequest;

namespace {

constexpr std::streamsize partBytes = 4096;
constexpr std::streamsize mostSkipped = std::streamsize{1} << 20;
/// For a body that comes right behind the head, so that most connections are kept.
constexpr std::chrono::milliseconds patience{20};
constexpr std::chrono::milliseconds longestLingering{500};
constexpr Poco::Clock::ClockDiff shortestTimeout = 1'000;  // µs; 0 would be none

// Without either there is none (RFC 9112), though Poco would read until the client hangs up.
bool hasBody(const HTTPServerRequest& request) {
  return request.hasContentLength() || request.getChunkedTransferEncoding();
}

bool isInvalid(const HTTPServerRequest& request) {
  if (const auto* chunked = dynamic_cast<const ChunkedRequest*>(&request)) return chunked->isInvalid();
  const auto* other = dynamic_cast<const BodyRequest*>(&request);
  return other != nullptr && isInvalid(other->original());
}

/// Takes what comes of the body, at most `most` bytes and what comes within `time`: take(bytes) reads so many
/// from the stream.
template <class Take>
BodyEnd readWithin(HTTPServerRequest& request, std::streamsize most, std::chrono::microseconds time,
                   Take take) {
  std::istream& stream = request.stream();
  // A handler that has found no number in it, say, has not read it to its end.
  if (!stream.bad()) stream.clear();
  Poco::Net::StreamSocket* const socket = socketOf(request);
  const Poco::Timespan usual = socket == nullptr ? Poco::Timespan() : socket->getReceiveTimeout();
  const Poco::Clock begun;
  std::streamsize taken = 0;
  bool ended = false;
  while (!ended && taken <= most && !begun.isElapsed(time.count())) {
    // Part by part through the buffer: each look at the connection has what is left of the time.
    if (socket != nullptr) {
      socket->setReceiveTimeout(Poco::Timespan(std::max(time.count() - begun.elapsed(), shortestTimeout)));
    }
    ended = stream.peek() == std::istream::traits_type::eof();
    if (!ended) {
      const std::streamsize waiting = std::max<std::streamsize>(stream.rdbuf()->in_avail(), 1);
      take(waiting);
      taken += waiting;
    }
  }
  if (socket != nullptr) socket->setReceiveTimeout(usual);
  if (taken > most) return BodyEnd::tooLong;
  if (isInvalid(request)) return BodyEnd::invalid;
  if (ended && !stream.bad()) return BodyEnd::whole;
  if (ended && !begun.isElapsed(time.count())) return BodyEnd::cut;
  stream.clear();  // of the time-out
  return BodyEnd::late;
}

}  // namespace

Body readBody(HTTPServerRequest& request, std::size_t most, std::chrono::microseconds time) {
  Body body;
  if (!hasBody(request)) return body;
  const bool chunked = request.getChunkedTransferEncoding();
  const std::streamsize length = chunked ? 0 : request.getContentLength64();
  const auto mostBytes = static_cast<std::streamsize>(most);
  if (length > mostBytes) {
    body.end = BodyEnd::tooLong;
    return body;
  }
  body.end = readWithin(request, mostBytes, time, [&](std::streamsize count) {
    const std::size_t before = body.bytes.size();
    body.bytes.resize(before + static_cast<std::size_t>(count));
    request.stream().read(body.bytes.data() + before, count);
  });
  const bool isShort = static_cast<std::streamsize>(body.bytes.size()) < length;
  if (body.end == BodyEnd::whole && isShort) body.end = BodyEnd::cut;
  return body;
}

bool skipBody(HTTPServerRequest& request) {
  if (!hasClearFraming(request)) return false;
  const auto* replayed = dynamic_cast<const ReplayedRequest*>(&request);
  if (!hasBody(request) || (replayed != nullptr && replayed->isRead())) return true;
  // Poco's own stream of chunks cannot be read in bounded time.
  const bool isPocos = dynamic_cast<const Poco::Net::HTTPServerRequestImpl*>(&request) != nullptr;
  if (isPocos && request.getChunkedTransferEncoding()) return request.stream().eof();
  const auto skip = [&](std::streamsize count) { request.stream().ignore(count); };
  return readWithin(request, mostSkipped, patience, skip) == BodyEnd::whole;
}

void closeUnread(HTTPServerRequest& request) noexcept {
  try {
    Poco::Net::StreamSocket* socket = socketOf(request);
    if (socket == nullptr) return;
    socket->shutdownSend();
    // Whatever it is: nobody reads this connection any more.
    const Poco::Clock begun;
    std::array<char, partBytes> part{};
    for (std::streamsize taken = 0; taken <= mostSkipped;) {
      const auto left = std::chrono::microseconds(longestLingering).count() - begun.elapsed();
      if (left <= 0 || !socket->poll(Poco::Timespan(left), Poco::Net::Socket::SELECT_READ)) return;
      const int count = socket->receiveBytes(part.data(), static_cast<int>(part.size()));
      if (count <= 0) return;
      taken += count;
    }
  } catch (const Poco::Exception&) {
    // The client has closed the connection itself.
  }
}

Poco::Net::StreamSocket* socketOf(HTTPServerRequest& request) {
  if (const auto* other = dynamic_cast<const BodyRequest*>(&request)) return socketOf(other->original());
  auto* received = dynamic_cast<Poco::Net::HTTPServerRequestImpl*>(&request);
  return received == nullptr ? nullptr : &received->socket();
}

ReplayBuffer::ReplayBuffer(std::string bytes, std::istream* rest) : bytes_(std::move(bytes)), rest_(rest) {
  setg(bytes_.data(), bytes_.data(), bytes_.data() + bytes_.size());
}

ReplayBuffer::int_type ReplayBuffer::underflow() {
  if (gptr() != egptr()) return traits_type::to_int_type(*gptr());
  if (rest_ == nullptr) return traits_type::eof();
  // One look at the connection, so that whoever reads can count the time.
  if (rest_->peek() == std::istream::traits_type::eof()) {
    if (!rest_->bad()) return traits_type::eof();
    rest_->clear();
    throw Poco::TimeoutException("the rest of the body has not come");  // makes the reader's stream bad, too
  }
  bytes_.resize(partBytes);
  const std::streamsize count = rest_->readsome(bytes_.data(), partBytes);
  setg(bytes_.data(), bytes_.data(), bytes_.data() + count);
  return traits_type::to_int_type(*gptr());
}

BodyRequest::BodyRequest(HTTPServerRequest& original, Poco::Net::HTTPServerResponse& response)
    : original_(original), response_(response) {
  HTTPRequest::operator=(original);
}

ReplayedRequest::ReplayedRequest(HTTPServerRequest& original, Body body)
    : ReplayedRequest(original, std::move(body), original.response()) {}

ReplayedRequest::ReplayedRequest(HTTPServerRequest& original, Body body,
                                 Poco::Net::HTTPServerResponse& response)
    : BodyRequest(original, response),
      whole_(body.end == BodyEnd::whole),
      body_(std::move(body.bytes), whole_ ? nullptr : &original.stream()),
      stream_(&body_) {}

bool ReplayedRequest::isRead() const {
  const auto* outer = dynamic_cast<const ReplayedRequest*>(&original());
  return whole_ || (outer != nullptr && outer->isRead());
}

ChunkedRequest::ChunkedRequest(Poco::Net::HTTPServerRequestImpl& original)
    : BodyRequest(original, original.response()), body_(original.session()), stream_(&body_) {}

}  // namespace lockkeeper::poco
