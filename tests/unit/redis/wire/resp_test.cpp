#include "wire/protocol/resp.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "lockkeeper/error.h"

namespace lockkeeper::redis {
namespace {

using namespace std::string_literals;

void feed(ReplyReader& reader, std::string_view bytes) {
  while (!bytes.empty()) {
    const std::span<char> room = reader.room();
    const std::size_t count = std::min(room.size(), bytes.size());
    std::memcpy(room.data(), bytes.data(), count);
    reader.filled(count);
    bytes.remove_prefix(count);
  }
}

Reply read(std::string_view bytes) {
  ReplyReader reader;
  feed(reader, bytes);
  Reply reply;
  EXPECT_TRUE(reader.next(reply)) << bytes;
  EXPECT_TRUE(reader.idle()) << bytes;
  return reply;
}

void expectRefused(const std::string& bytes) {
  ReplyReader reader;
  feed(reader, bytes);
  Reply reply;
  EXPECT_THROW(while (reader.next(reply)){}, ProtocolError) << bytes.substr(0, 60);
}

const std::vector<std::string> wholeReplies = {
    "+OK\r\n",
    "+\r\n",
    "-ERR no such thing\r\n",
    ":0\r\n",
    ":1234567890123\r\n",
    ":-9223372036854775808\r\n",
    "$-1\r\n",
    "*-1\r\n",
    "$0\r\n\r\n",
    "$10\r\nabc\r\n\0defg\r\n"s,
    "*0\r\n",
    "*2\r\n:1\r\n:1700000000000000\r\n",
    "*3\r\n$3\r\nabc\r\n:-1\r\n$-1\r\n",
    "*2\r\n*2\r\n+a\r\n*0\r\n*1\r\n*1\r\n-E x\r\n",
};

TEST(Resp, ReadsEachKindOfReply) {
  EXPECT_EQ(read("+OK\r\n").kind, ReplyKind::status);
  EXPECT_EQ(read("+OK\r\n").text, "OK");
  EXPECT_EQ(read("-NOSCRIPT No matching\r\n").kind, ReplyKind::error);
  EXPECT_EQ(read("-NOSCRIPT No matching\r\n").text, "NOSCRIPT No matching");
  EXPECT_EQ(read(":-7\r\n").integer, -7);
  EXPECT_EQ(read(":9223372036854775807\r\n").integer, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(read("$-1\r\n").kind, ReplyKind::nil);
  EXPECT_EQ(read("*-1\r\n").kind, ReplyKind::nil);
  EXPECT_EQ(read("$5\r\na\r\n\0b\r\n"s).text, "a\r\n\0b"s);

  const Reply nested = read("*3\r\n*2\r\n:1\r\n$2\r\nhi\r\n*0\r\n+end\r\n");
  ASSERT_EQ(nested.items.size(), 3U);
  EXPECT_EQ(nested.items[0].items[0].integer, 1);
  EXPECT_EQ(nested.items[0].items[1].text, "hi");
  EXPECT_EQ(nested.items[1].kind, ReplyKind::array);
  EXPECT_TRUE(nested.items[1].items.empty());
  EXPECT_EQ(nested.items[2].text, "end");
}

TEST(Resp, NothingOfAnEarlierReplyShowsInALaterOne) {
  ReplyReader reader;
  Reply reply;
  feed(reader, "*2\r\n$3\r\nabc\r\n:5\r\n*2\r\n:6\r\n$-1\r\n:7\r\n");
  ASSERT_TRUE(reader.next(reply));
  ASSERT_TRUE(reader.next(reply));
  ASSERT_EQ(reply.items.size(), 2U);
  EXPECT_TRUE(reply.items[0].isInteger(6));
  EXPECT_EQ(reply.items[1].kind, ReplyKind::nil);
  ASSERT_TRUE(reader.next(reply));
  EXPECT_TRUE(reply.isInteger(7));
  EXPECT_TRUE(reply.items.empty());
}

TEST(Resp, NoProperPrefixOfAReplyIsAReply) {
  for (const std::string& whole : wholeReplies) {
    for (std::size_t cut = 0; cut < whole.size(); ++cut) {
      ReplyReader reader;
      Reply reply;
      feed(reader, std::string_view(whole).substr(0, cut));
      EXPECT_FALSE(reader.next(reply)) << "cut after " << cut << " bytes of " << whole;
    }
    read(whole);
  }
}

TEST(Resp, PiecesOfAnySizeMakeTheSameReplies) {
  std::string stream;
  for (const std::string& whole : wholeReplies) stream += whole;
  for (std::size_t piece = 1; piece < stream.size(); ++piece) {
    ReplyReader reader;
    Reply reply;
    std::size_t replies = 0;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      feed(reader, std::string_view(stream).substr(at, piece));
      while (reader.next(reply)) ++replies;
    }
    EXPECT_EQ(replies, wholeReplies.size()) << "in pieces of " << piece;
    EXPECT_TRUE(reader.idle());
  }
}

TEST(Resp, RefusesWhatIsNotExactlyRedis) {
  for (const std::string bytes : {"HTTP/1.1 400 Bad Request\r\n",
                                  "SSH-2.0\r\n",
                                  "\r\n",
                                  " :1\r\n",
                                  "_\r\n",
                                  "#t\r\n",
                                  "%1\r\n",
                                  ":+1\r\n",
                                  ":\r\n",
                                  ":1a\r\n",
                                  ":0x1\r\n",
                                  ": 1\r\n",
                                  ":1.0\r\n",
                                  ":9223372036854775808\r\n",
                                  ":1\n",
                                  ":1\rx",
                                  "+OK\n",
                                  "+O\rK\r\n",
                                  "$-2\r\n",
                                  "$+3\r\nabc\r\n",
                                  "$3\r\nabcd\r\n",
                                  "$3\r\nabc\rx",
                                  "$\r\n",
                                  "*-2\r\n",
                                  "*x\r\n",
                                  "$00000000000000000000000000000000000000003\r\n"}) {
    expectRefused(bytes);
  }
  expectRefused("\0"s);
}

TEST(Resp, RefusesWhatIsTooLarge) {
  expectRefused("$1048577\r\n");
  expectRefused("$9223372036854775807\r\n");
  expectRefused("*65537\r\n");
  expectRefused("*9223372036854775807\r\n");
  expectRefused("*2\r\n*65535\r\n");
  expectRefused("+" + std::string(maxLineBytes + 1, 'a'));
  expectRefused(":" + std::string(maxNumberBytes + 1, '1'));
  std::string large = "*65536\r\n";
  for (int i = 0; i < 9; ++i) large += "$1048576\r\n" + std::string(maxBulkBytes, 'x') + "\r\n";
  expectRefused(large);
}

TEST(Resp, TakesTheLargestThatIsAllowed) {
  EXPECT_EQ(read("$1048576\r\n" + std::string(maxBulkBytes, 'x') + "\r\n").text.size(), maxBulkBytes);
  EXPECT_EQ(read("+" + std::string(maxLineBytes, 'a') + "\r\n").text.size(), maxLineBytes);
  std::string deep;
  for (std::size_t i = 0; i < maxReplyDepth; ++i) deep += "*1\r\n";
  EXPECT_EQ(read(deep + ":1\r\n").kind, ReplyKind::array);
  expectRefused(deep + "*1\r\n:1\r\n");
}

TEST(Resp, NestingCannotExhaustTheStack) {
  std::string hostile;
  for (int i = 0; i < 400'000; ++i) hostile += "*1\r\n";
  expectRefused(hostile);
}

TEST(Resp, CommandsAreArraysOfBulkStrings) {
  std::string out = "before";
  appendCommand(out, {"SET", "k\0\r\n"s, ""});
  EXPECT_EQ(out, "before*3\r\n$3\r\nSET\r\n$4\r\nk\0\r\n\r\n$0\r\n\r\n"s);
  const Reply command = read(out.substr(6));
  EXPECT_EQ(command.items[1].text, "k\0\r\n"s);
}

}  // namespace
}  // namespace lockkeeper::redis
