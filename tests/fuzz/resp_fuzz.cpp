// The reply reader under arbitrary bytes: it must not crash, must refuse only with ProtocolError, must read
// the same replies however the bytes are cut, and whatever it accepts must be well-formed within the bounds.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

#include "fuzz_target.h"
#include "lockkeeper/error.h"
#include "wire/protocol/resp.h"

namespace {

using lockkeeper::redis::Reply;
using lockkeeper::redis::ReplyKind;
using lockkeeper::redis::ReplyReader;

struct Outcome {
  std::string replies;  // written back as the bytes that they came from
  bool refused = false;
};

std::size_t write(const Reply& reply, std::string& out) {
  switch (reply.kind) {
    case ReplyKind::status:
      out += "+" + reply.text + "\r\n";
      return 1;
    case ReplyKind::error:
      out += "-" + reply.text + "\r\n";
      return 1;
    case ReplyKind::integer:
      out += ":" + std::to_string(reply.integer) + "\r\n";
      return 1;
    case ReplyKind::bulk:
      out += "$" + std::to_string(reply.text.size()) + "\r\n" + reply.text + "\r\n";
      return 1;
    case ReplyKind::nil:
      out += "$-1\r\n";
      return 1;
    case ReplyKind::array:
      break;
  }
  out += "*" + std::to_string(reply.items.size()) + "\r\n";
  std::size_t elements = 1;
  for (const Reply& item : reply.items) elements += write(item, out);
  return elements;
}

Outcome readAll(std::string_view bytes, std::size_t piece) {
  Outcome outcome;
  ReplyReader reader;
  Reply reply;
  try {
    while (!bytes.empty()) {
      const std::span<char> room = reader.room();
      require(room.size() >= 16 * 1024, "there is room for a read");
      const std::size_t count = std::min({piece, room.size(), bytes.size()});
      std::memcpy(room.data(), bytes.data(), count);
      reader.filled(count);
      bytes.remove_prefix(count);
      while (reader.next(reply)) {
        const std::size_t elements = write(reply, outcome.replies);
        require(elements <= lockkeeper::redis::maxReplyElements + 1, "replies are bounded");
      }
    }
  } catch (const lockkeeper::ProtocolError&) {
    outcome.refused = true;
  }
  return outcome;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Outcome whole = readAll(bytes, std::max<std::size_t>(size, 1));
  const Outcome cut = readAll(bytes, 1 + (size > 0 ? data[0] % 7U : 0U));
  require(whole.replies == cut.replies, "cuts do not change replies");
  require(whole.refused == cut.refused, "cuts do not change what is refused");
  const Outcome again = readAll(whole.replies, std::max<std::size_t>(whole.replies.size(), 1));
  require(!again.refused && again.replies == whole.replies, "what was read can be written and read again");
  return 0;
}

std::vector<std::string> fuzzSeeds() {
  return {"+OK\r\n",
          "-NOSCRIPT No matching script\r\n",
          ":1234567890\r\n",
          ":-9223372036854775808\r\n",
          "$-1\r\n",
          "$5\r\nab\r\nc\r\n",
          "*2\r\n:1\r\n:1700000000000000\r\n",
          "*3\r\n$3\r\nabc\r\n*1\r\n*0\r\n*-1\r\n",
          "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
          "$0\r\n\r\n+\r\n*0\r\n",
          "HTTP/1.1 400 Bad Request\r\n\r\n"};
}
