#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockkeeper::etcd {

/// Reads one HTTP/1.1 reply after the other from bytes as they come. Throws StreamBroken for anything that is
/// none: what follows can then not be told apart from it.
class HttpReply {
 public:
  /// Where to put the next bytes; filled() says how many there are.
  std::span<char> room();
  void filled(std::size_t count) { filled_ += count; }

  /// Reads on in what has been filled. True once the reply is complete.
  bool complete();

  int status() const { return status_; }
  /// The body, as far as it has come.
  const std::string& body() const { return body_; }
  /// The next line of a body that comes line by line, without its end. False: none is complete yet.
  bool nextLine(std::string& line);
  /// Whether the connection can be used for another request: not when bytes have come that nobody asked for.
  bool reusable() const { return reusable_ && (part_ != Part::done || read_ == filled_); }

  /// Makes ready for the next one.
  void restart();

 private:
  enum class Part { head, sized, chunkSize, chunk, chunkEnd, trailer, toTheEnd, done };

  bool step();
  bool takeLine(std::string_view& line);
  void countLine(std::size_t length);
  void readStatus(std::string_view line);
  void readField(std::string_view line);
  void endHead();
  bool takeBody();

  std::string buffer_;
  std::size_t read_ = 0;    // of buffer_
  std::size_t filled_ = 0;  // of buffer_
  Part part_ = Part::head;
  int status_ = 0;
  bool chunked_ = false;
  bool sized_ = false;
  bool reusable_ = true;
  std::uint64_t left_ = 0;  // of the body, or of the chunk
  std::size_t fields_ = 0;  // bytes of head and trailer so far
  std::string body_;
  std::size_t searched_ = 0;  // of body_: no line ends there
};

}  // namespace lockkeeper::etcd
