#include "http/idempotency/request_body.h"

#include <utility>

namespace lockkeeper::poco {

using Poco::Net::HTTPServerRequest;

namespace {

constexpr std::streamsize partBytes = 4096;

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

bool skipBody(HTTPServerRequest& request, std::size_t most) {
  if (!hasBody(request)) return true;
  request.stream().ignore(static_cast<std::streamsize>(most) + 1);
  return request.stream().eof();
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
