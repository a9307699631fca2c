#include "http/request_body.h"

#include <Poco/Clock.h>
#include <Poco/Exception.h>
#include <Poco/Net/HTTPServerRequestImpl.h>

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

namespace lockkeeper::poco {

using Poco::Net::HTTPServerRequest;

namespace {

constexpr std::streamsize partBytes = 4096;
constexpr std::streamsize mostSkipped = std::streamsize{1} << 20;
constexpr std::chrono::milliseconds longestLingering{500};
constexpr Poco::Clock::ClockDiff shortestTimeout = 1'000;  // µs; 0 would be none

// Without either there is none (RFC 9112), though Poco would read until the client hangs up.
bool hasBody(const HTTPServerRequest& request) {
  return request.hasContentLength() || request.getChunkedTransferEncoding();
}

/// Ends what a connection receives when `time` is over. Poco reads the head of a chunk byte by byte, and each
/// byte has the whole of the socket's timeout: a client that sends one now and then would never be late.
class EndOfReceiving {
 public:
  EndOfReceiving(int socket, std::chrono::microseconds time)
      : thread_([this, socket, time](const std::stop_token& stop) {
          std::unique_lock held(mutex_);
          wakeUp_.wait_for(held, stop, time, [] { return false; });
          if (!stop.stop_requested()) ::shutdown(socket, SHUT_RD);
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any wakeUp_;
  std::jthread thread_;  // the last member: it ends before the others
};

/// Takes what comes of the body, at most `most` bytes and what comes within `time`: take(bytes) reads so many
/// from the stream.
template <class Take>
BodyEnd readWithin(HTTPServerRequest& request, std::streamsize most, std::chrono::microseconds time,
                   Take take) {
  std::istream& stream = request.stream();
  Poco::Net::StreamSocket* const socket = socketOf(request);
  const Poco::Timespan usual = socket == nullptr ? Poco::Timespan() : socket->getReceiveTimeout();
  const Poco::Clock begun;
  const bool chunked = request.getChunkedTransferEncoding();
  std::optional<EndOfReceiving> end;
  if (socket != nullptr && chunked) end.emplace(socket->impl()->sockfd(), time);
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
  // A connection that breaks ends the body, too: whoever uses it will see.
  const bool wasCut = stream.bad() || end;
  if (ended && !(wasCut && begun.isElapsed(time.count()))) return BodyEnd::whole;
  stream.clear();  // of the time-out
  return BodyEnd::late;
}

}  // namespace

std::optional<Poco::Int64> statedLength(const HTTPServerRequest& request) {
  if (request.getChunkedTransferEncoding() || !request.hasContentLength()) return std::nullopt;
  return request.getContentLength64();
}

Body readBody(HTTPServerRequest& request, std::size_t most, std::chrono::microseconds time) {
  Body body;
  if (!hasBody(request)) return body;
  const auto mostBytes = static_cast<std::streamsize>(most);
  const auto length = statedLength(request).value_or(0);
  if (length < 0 || length > mostBytes) {
    body.end = length < 0 ? BodyEnd::invalid : BodyEnd::tooLong;
    return body;
  }
  body.end = readWithin(request, mostBytes, time, [&](std::streamsize count) {
    const std::size_t before = body.bytes.size();
    body.bytes.resize(before + static_cast<std::size_t>(count));
    request.stream().read(body.bytes.data() + before, count);
  });
  return body;
}

bool skipBody(HTTPServerRequest& request, std::chrono::microseconds time) {
  const auto* replayed = dynamic_cast<const ReplayedRequest*>(&request);
  if (!hasBody(request) || (replayed != nullptr && replayed->isRead())) return true;
  const auto length = statedLength(request);
  if (!length) return request.stream().eof();  // it comes in chunks
  if (*length < 0) return false;
  const auto skip = [&](std::streamsize count) { request.stream().ignore(count); };
  return readWithin(request, mostSkipped, time, skip) == BodyEnd::whole;
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
  if (auto* replayed = dynamic_cast<ReplayedRequest*>(&request)) return socketOf(replayed->original());
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

ReplayedRequest::ReplayedRequest(HTTPServerRequest& original, Body body)
    : ReplayedRequest(original, std::move(body), original.response()) {}

ReplayedRequest::ReplayedRequest(HTTPServerRequest& original, Body body,
                                 Poco::Net::HTTPServerResponse& response)
    : original_(original),
      response_(response),
      whole_(body.end == BodyEnd::whole && !original.stream().bad()),  // bad: the connection broke in it
      body_(std::move(body.bytes), whole_ ? nullptr : &original.stream()),
      stream_(&body_) {
  HTTPRequest::operator=(original);
}

bool ReplayedRequest::isRead() const {
  const auto* outer = dynamic_cast<const ReplayedRequest*>(&original_);
  return whole_ || (outer != nullptr && outer->isRead());
}

}  // namespace lockkeeper::poco
