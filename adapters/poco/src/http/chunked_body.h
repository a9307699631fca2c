#pragma once

#include <Poco/Net/HTTPServerSession.h>

#include <array>
#include <cstddef>
#include <streambuf>
#include <string>

namespace lockkeeper::poco {

/// The bytes of a body that comes in chunks (RFC 9112, 7.1), read from the connection as they are needed and
/// not beyond the body's end. Poco's own stream takes a chunk size that is no number for the end of the body:
/// what follows would then be served as another request. And it gives each byte of a chunk's head the whole
/// receive timeout; here all that one look waits for has that time together. A look that was too late can be
/// repeated: nothing is lost.
class ChunkedBody final : public std::streambuf {
 public:
  explicit ChunkedBody(Poco::Net::HTTPServerSession& session) : session_(session) {}

  /// Whether the client has sent what is no chunked body.
  bool isInvalid() const { return part_ == Part::invalid; }

 private:
  /// What comes next.
  enum class Part { size, data, endOfData, trailer, end, invalid };

  /// Throws Poco::Exception, which makes the stream bad, unless the body goes on or has ended as it should.
  int_type underflow() override;
  /// Takes one byte of what is not data.
  void step(char byte);
  void endLine();
  void startChunk();

  Poco::Net::HTTPServerSession& session_;
  Part part_ = Part::size;
  std::string line_;              // as far as it has come
  std::size_t trailerBytes_ = 0;  // of all lines
  std::size_t left_ = 0;          // of the present chunk
  std::array<char, 4096> buffer_{};
};

}  // namespace lockkeeper::poco
