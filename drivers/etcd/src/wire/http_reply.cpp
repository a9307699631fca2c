#include "wire/http_reply.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "lockkeeper/stream/stream.h"

namespace lockkeeper::etcd {

namespace {

constexpr std::size_t readAtOnce = 16 * 1024;
constexpr std::size_t longestLine = 16 * 1024;
constexpr std::size_t longestFields = 64 * 1024;  // of one reply, with interim replies and the trailer
// Above what etcd sends for any request of ours: a thousand claims in a listing.
constexpr std::size_t longestBody = 64 * 1024 * 1024;

[[noreturn]] void notHttp() { throw StreamBroken("the reply is not HTTP/1.1"); }

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::uint64_t numberIn(std::string_view text, int base) {
  std::uint64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (fault != std::errc{} || end != text.data() + text.size() || number > longestBody) notHttp();
  return number;
}

}  // namespace

std::span<char> HttpReply::room() {
  buffer_.erase(0, read_);
  filled_ -= read_;
  read_ = 0;
  if (buffer_.size() < filled_ + readAtOnce) buffer_.resize(filled_ + readAtOnce);
  return std::span(buffer_).subspan(filled_);
}

void HttpReply::restart() {
  part_ = Part::head;
  status_ = 0;
  chunked_ = sized_ = false;
  fields_ = 0;
  body_ = {};  // one that was long gives its memory back
  searched_ = 0;
}

bool HttpReply::complete() {
  while (part_ != Part::done) {
    if (!step()) return false;
  }
  return true;
}

// False when more bytes are needed.
bool HttpReply::step() {
  if (part_ == Part::sized || part_ == Part::chunk || part_ == Part::toTheEnd) return takeBody();
  std::string_view line;
  if (!takeLine(line)) return false;
  switch (part_) {
    case Part::head:
      countLine(line.size());
      if (status_ == 0) {
        readStatus(line);
      } else if (line.empty()) {
        endHead();
      } else {
        readField(line);
      }
      break;
    case Part::chunkSize:
      left_ = numberIn(line.substr(0, line.find_first_of("; ")), 16);
      part_ = left_ == 0 ? Part::trailer : Part::chunk;
      break;
    case Part::chunkEnd:
      if (!line.empty()) notHttp();
      part_ = Part::chunkSize;
      break;
    case Part::trailer:
      countLine(line.size());
      if (line.empty()) part_ = Part::done;
      break;
    default:
      break;
  }
  return true;
}

bool HttpReply::takeLine(std::string_view& line) {
  const std::string_view there = std::string_view(buffer_).substr(read_, filled_ - read_);
  const std::size_t end = there.find('\n');
  if (end == std::string_view::npos) {
    if (there.size() > longestLine) notHttp();
    return false;
  }
  if (end == 0 || there[end - 1] != '\r') notHttp();
  line = there.substr(0, end - 1);
  read_ += end + 1;
  return true;
}

// Lines that are read and forgotten take no memory, but a server could go on sending them for ever.
void HttpReply::countLine(std::size_t length) {
  fields_ += length + 2;
  if (fields_ > longestFields) notHttp();
}

void HttpReply::readStatus(std::string_view line) {
  if (!line.starts_with("HTTP/1.") || line.size() < 12 || line[8] != ' ') notHttp();
  reusable_ = line[7] == '1';
  status_ = static_cast<int>(numberIn(line.substr(9, 3), 10));
}

void HttpReply::readField(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) notHttp();
  const std::string name = lower(line.substr(0, colon));
  std::string_view value = line.substr(colon + 1);
  value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
  value.remove_suffix(value.size() - (value.find_last_not_of(" \t") + 1));
  if (name == "content-length") {
    const std::uint64_t length = numberIn(value, 10);
    if (sized_ && length != left_) notHttp();
    sized_ = true;
    left_ = length;
  } else if (name == "transfer-encoding") {
    if (lower(value) != "chunked") notHttp();
    chunked_ = true;
  } else if (name == "connection" && lower(value) == "close") {
    reusable_ = false;
  }
}

void HttpReply::endHead() {
  if (chunked_ && sized_) notHttp();  // two lengths: where the reply ends is not certain
  if (status_ < 200) {                // an interim reply: another one follows
    status_ = 0;
    chunked_ = sized_ = false;
  } else if (chunked_) {
    part_ = Part::chunkSize;
  } else if (status_ == 204 || (sized_ && left_ == 0)) {
    part_ = Part::done;
  } else {
    part_ = sized_ ? Part::sized : Part::toTheEnd;
    if (!sized_) reusable_ = false;
  }
}

bool HttpReply::takeBody() {
  const std::size_t there = filled_ - read_;
  if (there == 0) return false;
  const std::size_t taken =
      part_ == Part::toTheEnd ? there : static_cast<std::size_t>(std::min<std::uint64_t>(there, left_));
  if (body_.size() + taken > longestBody) notHttp();
  body_.append(buffer_, read_, taken);
  read_ += taken;
  if (part_ == Part::toTheEnd) return false;
  left_ -= taken;
  if (left_ == 0) part_ = part_ == Part::sized ? Part::done : Part::chunkEnd;
  return true;
}

bool HttpReply::nextLine(std::string& line) {
  const std::size_t end = body_.find('\n', searched_);
  searched_ = end == std::string::npos ? body_.size() : 0;
  if (end == std::string::npos) return false;
  line.assign(body_, 0, end);
  body_.erase(0, end + 1);
  return true;
}

}  // namespace lockkeeper::etcd
