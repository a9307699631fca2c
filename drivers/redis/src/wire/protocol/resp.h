#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockkeeper::redis {

/// The Redis serialization protocol, version 2 (https://redis.io/docs/reference/protocol-spec/), with bounds
/// on everything that a peer may send.
inline constexpr std::size_t maxBulkBytes = std::size_t{1} << 20;
inline constexpr std::size_t maxLineBytes = 8192;       ///< A status or an error.
inline constexpr std::size_t maxNumberBytes = 32;       ///< An integer or a length.
inline constexpr std::size_t maxReplyElements = 65536;  ///< In one reply, all its arrays together.
inline constexpr std::size_t maxReplyBytes = std::size_t{8} << 20;
inline constexpr std::size_t maxReplyDepth = 8;

enum class ReplyKind { status, error, integer, bulk, nil, array };

/// One whole reply.
struct Reply {
  ReplyKind kind = ReplyKind::nil;
  std::int64_t integer = 0;
  std::string text;          ///< Of a status, an error or a bulk string.
  std::vector<Reply> items;  ///< Of an array.

  bool isInteger(std::int64_t value) const { return kind == ReplyKind::integer && integer == value; }
};

/// Appends how many words the next command has, and then each of them.
/// @{
void appendCommandHeader(std::string& out, std::size_t words);
void appendWord(std::string& out, std::string_view word);
/// @}

/// Appends one command, as an array of bulk strings.
void appendCommand(std::string& out, std::span<const std::string_view> words);
void appendCommand(std::string& out, std::initializer_list<std::string_view> words);

/// Cuts a stream of bytes into replies. Works through each byte once, however small the pieces are in which
/// it comes, and without recursion. One thread at a time.
class ReplyReader {
 public:
  /// Where to put the next bytes of the stream; at least 16 KiB.
  std::span<char> room();

  /// The first `count` bytes of room() have been filled.
  void filled(std::size_t count) { end_ += count; }

  /// Takes the next reply. False: it is not complete yet. Throws ProtocolError for anything that is not
  /// exactly RESP2 within the bounds; the reader must not be used after that.
  bool next(Reply& reply);

  /// True between replies, when no byte is left over.
  bool idle() const { return begin_ == end_ && open_.empty(); }

 private:
  struct OpenArray {
    Reply* array;
    std::size_t filled;
  };

  bool readElement(Reply& element);
  bool readBulk(Reply& element, std::int64_t length, std::size_t headerBytes);
  void openArray(Reply& element, std::int64_t length);
  bool findLine(std::size_t limit, std::string_view& line) const;
  void consume(std::size_t count);

  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;

  Reply root_;                   // the reply being read
  std::vector<OpenArray> open_;  // its arrays that still miss elements, outermost first
  std::size_t replyElements_ = 0;
  std::size_t replyBytes_ = 0;
};

}  // namespace lockkeeper::redis
