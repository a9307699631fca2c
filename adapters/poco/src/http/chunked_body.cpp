#include "http/chunked_body.h"

#include <Poco/Clock.h>
#include <Poco/Exception.h>
#include <Poco/Net/StreamSocket.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace lockkeeper::poco {

namespace {

constexpr std::string_view lineEnd = "\r\n";
constexpr std::size_t longestLine = 1024;
constexpr std::size_t mostTrailerBytes = 8192;
constexpr std::size_t mostDigits = 15;              // of a size, which then fits into 64 bits
constexpr Poco::Clock::ClockDiff shortest = 1'000;  // µs; 0 would be none

/// What a session keeps for Poco's own streams.
class Opened : public Poco::Net::HTTPServerSession {
 public:
  using HTTPSession::buffered;
  using HTTPSession::read;
  using HTTPSession::refill;
};

constexpr auto buffered = &Opened::buffered;
constexpr auto readSome = &Opened::read;
constexpr auto refill = &Opened::refill;

/// Waits together not longer than the receive timeout that the socket had before; it has it again after that.
class SharedTimeout {
 public:
  explicit SharedTimeout(Poco::Net::StreamSocket& socket)
      : socket_(socket), usual_(socket.getReceiveTimeout()) {}
  SharedTimeout(const SharedTimeout&) = delete;
  SharedTimeout& operator=(const SharedTimeout&) = delete;
  ~SharedTimeout() {
    try {
      socket_.setReceiveTimeout(usual_);
    } catch (const Poco::Exception&) {
      // The socket is closed.
    }
  }

  /// Before each wait. Throws Poco::TimeoutException when the time is over.
  void apply() {
    if (usual_.totalMicroseconds() == 0) return;
    const auto left = usual_.totalMicroseconds() - begun_.elapsed();
    if (left <= 0) throw Poco::TimeoutException("the rest of the body has not come");
    socket_.setReceiveTimeout(Poco::Timespan(std::max(left, shortest)));
  }

 private:
  Poco::Net::StreamSocket& socket_;
  const Poco::Timespan usual_;
  const Poco::Clock begun_;
};

}  // namespace

ChunkedBody::int_type ChunkedBody::underflow() {
  if (gptr() != egptr()) return traits_type::to_int_type(*gptr());
  SharedTimeout timeout(session_.socket());
  for (;;) {
    if (part_ == Part::end) return traits_type::eof();
    if (part_ == Part::invalid) throw Poco::DataFormatException("the body's chunks are not valid");
    if ((session_.*buffered)() == 0) {
      timeout.apply();
      (session_.*refill)();
      if ((session_.*buffered)() == 0) throw Poco::IOException("the client has gone");
    }
    if (part_ == Part::data) break;
    char byte = 0;
    (session_.*readSome)(&byte, 1);
    step(byte);
  }
  const auto most = static_cast<std::streamsize>(std::min(left_, buffer_.size()));
  const int count = (session_.*readSome)(buffer_.data(), most);
  left_ -= static_cast<std::size_t>(count);
  if (left_ == 0) part_ = Part::endOfData;
  setg(buffer_.data(), buffer_.data(), buffer_.data() + count);
  return traits_type::to_int_type(*gptr());
}

void ChunkedBody::step(char byte) {
  line_.push_back(byte);
  const bool ends = line_.ends_with(lineEnd);
  // A line feed or a carriage return by itself is an end of the line to some, and none to others.
  const bool isAlone = !ends && (byte == '\n' || (line_.size() > 1 && line_[line_.size() - 2] == '\r'));
  const bool isTooLong = line_.size() > (part_ == Part::endOfData ? lineEnd.size() : longestLine);
  if (isAlone || isTooLong || (part_ == Part::endOfData && line_.front() != '\r')) {
    part_ = Part::invalid;
  } else if (ends) {
    line_.resize(line_.size() - lineEnd.size());
    endLine();
    line_.clear();
  }
}

void ChunkedBody::endLine() {
  switch (part_) {
    case Part::size:
      return startChunk();
    case Part::endOfData:
      part_ = line_.empty() ? Part::size : Part::invalid;
      return;
    case Part::trailer:
      trailerBytes_ += line_.size();
      if (line_.empty()) part_ = Part::end;
      if (trailerBytes_ > mostTrailerBytes) part_ = Part::invalid;
      return;
    case Part::data:
    case Part::end:
    case Part::invalid:
      return;
  }
}

void ChunkedBody::startChunk() {
  const std::size_t digits = line_.find_first_not_of("0123456789abcdefABCDEF");
  const std::string_view size = std::string_view(line_).substr(0, digits);
  const std::string_view rest = std::string_view(line_).substr(size.size());
  const std::size_t extension = rest.find_first_not_of(" \t");
  const bool restIsExtension = rest.empty() || (extension != rest.npos && rest[extension] == ';');
  if (size.empty() || size.size() > mostDigits || !restIsExtension) {
    part_ = Part::invalid;
    return;
  }
  std::from_chars(size.data(), size.data() + size.size(), left_, 16);
  part_ = left_ == 0 ? Part::trailer : Part::data;
}

}  // namespace lockkeeper::poco
