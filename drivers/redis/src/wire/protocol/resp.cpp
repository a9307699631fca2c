#include "wire/protocol/resp.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "lockkeeper/error.h"
#include "lockkeeper/internal/whole_number.h"

namespace lockkeeper::redis {

namespace {

constexpr std::size_t leastRoom = 16'384;

[[noreturn]] void refuse(const char* fault) {
  throw ProtocolError(std::string("the server does not speak the Redis protocol: ") + fault);
}

// A letter, a number and the end of the line.
constexpr std::size_t longestHeader = 24;

void appendHeader(std::string& out, char type, std::size_t number) {
  char header[longestHeader];
  header[0] = type;
  char* end = std::to_chars(header + 1, std::end(header), number).ptr;
  *end++ = '\r';
  *end++ = '\n';
  out.append(header, end);
}

std::int64_t parseNumber(std::string_view text) {
  const auto number = wholeNumber<std::int64_t>(text);
  if (!number) refuse("a number is malformed");
  return *number;
}

}  // namespace

void appendCommandHeader(std::string& out, std::size_t words) { appendHeader(out, '*', words); }

void appendWord(std::string& out, std::string_view word) {
  appendHeader(out, '$', word.size());
  out.append(word);
  out.append("\r\n", 2);
}

void appendCommand(std::string& out, std::span<const std::string_view> words) {
  std::size_t bytes = out.size() + longestHeader;
  for (const std::string_view word : words) bytes += longestHeader + word.size() + 2;
  out.reserve(bytes);
  appendCommandHeader(out, words.size());
  for (const std::string_view word : words) appendWord(out, word);
}

void appendCommand(std::string& out, std::initializer_list<std::string_view> words) {
  appendCommand(out, std::span(words.begin(), words.size()));
}

std::span<char> ReplyReader::room() {
  if (begin_ == end_) begin_ = end_ = 0;
  if (buffer_.size() - end_ < leastRoom && begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() - end_ < leastRoom) buffer_.resize(std::max(buffer_.size() * 2, end_ + leastRoom));
  return std::span(buffer_).subspan(end_);
}

bool ReplyReader::next(Reply& reply) {
  while (true) {
    Reply& element = open_.empty() ? root_ : open_.back().array->items[open_.back().filled];
    const std::size_t depth = open_.size();
    if (!readElement(element)) return false;
    if (open_.size() > depth) continue;  // an array with elements: they follow
    while (!open_.empty() && ++open_.back().filled == open_.back().array->items.size()) open_.pop_back();
    if (open_.empty()) break;
  }
  std::swap(reply, root_);
  replyElements_ = 0;
  replyBytes_ = 0;
  return true;
}

bool ReplyReader::readElement(Reply& element) {
  if (begin_ == end_) return false;
  const char type = buffer_[begin_];
  if (type == 0 || std::strchr("+-:$*", type) == nullptr)
    refuse("a reply starts with a byte of no known type");
  std::string_view line;
  if (!findLine(type == '+' || type == '-' ? maxLineBytes : maxNumberBytes, line)) return false;
  const std::size_t lineBytes = 1 + line.size() + 2;

  if (type == '$') return readBulk(element, parseNumber(line), lineBytes);
  element.items.clear();
  switch (type) {
    case '+':
    case '-':
      element.kind = type == '+' ? ReplyKind::status : ReplyKind::error;
      element.text.assign(line);
      break;
    case ':':
      element.kind = ReplyKind::integer;
      element.integer = parseNumber(line);
      break;
    default:
      openArray(element, parseNumber(line));
  }
  consume(lineBytes);
  return true;
}

bool ReplyReader::readBulk(Reply& element, std::int64_t length, std::size_t headerBytes) {
  if (length < -1) refuse("a bulk string has a negative length");
  if (length > static_cast<std::int64_t>(maxBulkBytes)) refuse("a bulk string is longer than 1 MiB");
  element.items.clear();
  if (length == -1) {
    element.kind = ReplyKind::nil;
    consume(headerBytes);
    return true;
  }
  const std::size_t breakAt = headerBytes + static_cast<std::size_t>(length);
  const std::string_view seen(buffer_.data() + begin_, end_ - begin_);
  if (seen.size() > breakAt && seen[breakAt] != '\r') refuse("a bulk string is longer than it says");
  if (seen.size() < breakAt + 2) return false;
  if (seen[breakAt + 1] != '\n') refuse("a bulk string does not end with a line break");
  element.kind = ReplyKind::bulk;
  element.text.assign(seen.substr(headerBytes, breakAt - headerBytes));
  consume(breakAt + 2);
  return true;
}

void ReplyReader::openArray(Reply& element, std::int64_t length) {
  if (length < -1) refuse("an array has a negative length");
  element.kind = length == -1 ? ReplyKind::nil : ReplyKind::array;
  if (length <= 0) return;
  if (open_.size() == maxReplyDepth) refuse("arrays are nested too deeply");
  if (length > static_cast<std::int64_t>(maxReplyElements - replyElements_))
    refuse("a reply has too many elements");
  replyElements_ += static_cast<std::size_t>(length);
  element.items.resize(static_cast<std::size_t>(length));
  open_.push_back({&element, 0});
}

/// The bytes between the type byte and the line break. False: the line break has not come yet.
bool ReplyReader::findLine(std::size_t limit, std::string_view& line) const {
  const char* const first = buffer_.data() + begin_ + 1;
  const std::size_t present = end_ - begin_ - 1;
  const std::string_view seen(first, std::min(present, limit + 1));
  const std::size_t length = seen.find_first_of("\r\n");
  if (length == std::string_view::npos) {
    if (present > limit) refuse("a line is too long");
    return false;
  }
  if (first[length] == '\n') refuse("a line ends without a carriage return");
  if (length + 1 == present) return false;
  if (first[length + 1] != '\n') refuse("a carriage return stands alone");
  line = seen.substr(0, length);
  return true;
}

void ReplyReader::consume(std::size_t count) {
  begin_ += count;
  replyBytes_ += count;
  if (replyBytes_ > maxReplyBytes) refuse("a reply is too large");
}

}  // namespace lockkeeper::redis
