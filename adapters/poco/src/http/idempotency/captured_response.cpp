#include "http/idempotency/captured_response.h"

#include <Poco/DateTimeFormat.h>
#include <Poco/DateTimeFormatter.h>
#include <Poco/File.h>
#include <Poco/FileStream.h>
#include <Poco/StreamCopier.h>

#include <utility>

namespace lockkeeper::poco {

CapturedResponse::CapturedResponse(Poco::Net::HTTPServerResponse& original, std::size_t mostBytes,
                                   std::function<void()> spilling)
    : original_(original),
      mostBytes_(mostBytes),
      spilling_(std::move(spilling)),
      body_(*this),
      stream_(&body_) {
  setVersion(original.getVersion());
  setKeepAlive(original.getKeepAlive());
}

std::ostream& CapturedResponse::send() {
  sent_ = true;
  return stream_;
}

void CapturedResponse::sendFile(const std::string& path, const std::string& mediaType) {
  const Poco::File file(path);
  const Poco::Timestamp modified = file.getLastModified();
  Poco::FileInputStream content(path);  // throws when it cannot be opened
  set("Last-Modified", Poco::DateTimeFormatter::format(modified, Poco::DateTimeFormat::HTTP_FORMAT));
  setContentLength64(static_cast<Poco::Int64>(file.getSize()));
  setContentType(mediaType);
  setChunkedTransferEncoding(false);
  Poco::StreamCopier::copyStream(content, send());
}

void CapturedResponse::sendBuffer(const void* buffer, std::size_t length) {
  setContentLength64(static_cast<Poco::Int64>(length));
  setChunkedTransferEncoding(false);
  send().write(static_cast<const char*>(buffer), static_cast<std::streamsize>(length));
}

void CapturedResponse::redirect(const std::string& uri, HTTPStatus status) {
  setContentLength(0);
  setChunkedTransferEncoding(false);
  setStatusAndReason(status);
  set("Location", uri);
  send();
}

void CapturedResponse::requireAuthentication(const std::string& realm) {
  setStatusAndReason(HTTP_UNAUTHORIZED);
  set("WWW-Authenticate", "Basic realm=\"" + realm + "\"");
}

StoredAnswer CapturedResponse::answer(std::string fingerprint) const {
  return {.fingerprint = std::move(fingerprint),
          .status = getStatus(),
          .reason = getReason(),
          .fields = ownFields(*this),
          .body = body_.bytes};
}

void CapturedResponse::spill() {
  spilling_();
  setHead(original_,
          {.fingerprint = {}, .status = getStatus(), .reason = getReason(), .fields = ownFields(*this)});
  if (!getKeepAlive()) original_.setKeepAlive(false);
  if (hasContentLength()) original_.setContentLength64(getContentLength64());
  original_.setChunkedTransferEncoding(getChunkedTransferEncoding());
  body_.out = &original_.send();
  body_.out->write(body_.bytes.data(), static_cast<std::streamsize>(body_.bytes.size()));
  body_.bytes = {};
}

std::streamsize CapturedResponse::Buffer::xsputn(const char* from, std::streamsize count) {
  if (out == nullptr && bytes.size() + static_cast<std::size_t>(count) > owner_.mostBytes_) owner_.spill();
  if (out == nullptr) {
    bytes.append(from, static_cast<std::size_t>(count));
    return count;
  }
  return out->write(from, count) ? count : 0;
}

CapturedResponse::Buffer::int_type CapturedResponse::Buffer::overflow(int_type byte) {
  if (traits_type::eq_int_type(byte, traits_type::eof())) return traits_type::not_eof(byte);
  const char one = traits_type::to_char_type(byte);
  return xsputn(&one, 1) == 1 ? byte : traits_type::eof();
}

int CapturedResponse::Buffer::sync() { return out == nullptr || out->flush() ? 0 : -1; }

}  // namespace lockkeeper::poco
