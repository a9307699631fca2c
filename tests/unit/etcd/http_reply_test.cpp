#include "wire/http_reply.h"

#include <algorithm>
#include <string>

#include "lockkeeper/stream/stream.h"

#include <gtest/gtest.h>

namespace lockkeeper::etcd {
namespace {

/// Whether the reply is complete after `bytes`, which come in pieces of `size`.
bool feed(HttpReply& reply, std::string_view bytes, std::size_t size = 1) {
  bool complete = false;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, size);
    std::copy(piece.begin(), piece.end(), reply.room().begin());
    reply.filled(piece.size());
    complete = reply.complete();
    bytes.remove_prefix(piece.size());
  }
  return complete;
}

constexpr std::string_view sized = "HTTP/1.1 412 Precondition Failed\r\nContent-Length: 5\r\n\r\nhello";
constexpr std::string_view chunked =
    "HTTP/1.1 200 OK\r\ntransfer-ENCODING:  Chunked \r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nTrailer: "
    "t\r\n\r\n";

TEST(EtcdHttpReply, ReadsReplyAfterReplyHoweverTheyAreCut) {
  for (std::size_t size = 1; size < 40; ++size) {
    HttpReply reply;
    for (int round = 0; round < 2; ++round) {
      ASSERT_TRUE(feed(reply, sized, size));
      EXPECT_EQ(reply.status(), 412);
      EXPECT_EQ(reply.body(), "hello");
      reply.restart();
      ASSERT_TRUE(feed(reply, chunked, size));
      EXPECT_EQ(reply.status(), 200);
      EXPECT_EQ(reply.body(), "hello");
      EXPECT_TRUE(reply.reusable());
      reply.restart();
    }
  }
}

TEST(EtcdHttpReply, NoBeginningOfAReplyIsAReply) {
  for (const std::string_view whole : {sized, chunked}) {
    for (std::size_t length = 0; length < whole.size(); ++length) {
      HttpReply reply;
      EXPECT_FALSE(feed(reply, whole.substr(0, length))) << length;
    }
  }
}

TEST(EtcdHttpReply, BytesThatFollowItEndTheUseOfTheConnection) {
  for (const std::string_view whole : {sized, chunked}) {
    for (const std::string& more : {std::string("x"), std::string(sized)}) {
      HttpReply reply;
      ASSERT_TRUE(feed(reply, std::string(whole) + more, 16000));
      EXPECT_EQ(reply.body(), "hello");
      EXPECT_FALSE(reply.reusable());
    }
  }
}

/// How many bytes are taken of `first` and then `more` again and again; a megabyte at most.
std::size_t taken(const std::string& first, const std::string& more) {
  HttpReply reply;
  std::size_t count = first.size();
  try {
    (void)feed(reply, first, 100);
    for (; count < 1024 * 1024; count += more.size()) (void)feed(reply, more, 100);
  } catch (const StreamBroken&) {
  }
  return count;
}

TEST(EtcdHttpReply, HeadsAndTrailersHaveAnEnd) {
  EXPECT_LT(taken("HTTP/1.1 200 OK\r\n", "Name: value\r\n"), 100000U);
  EXPECT_LT(taken("", "HTTP/1.1 100 Continue\r\n\r\n"), 100000U);
  EXPECT_LT(taken("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "Name: value\r\n"), 100000U);
  EXPECT_EQ(taken("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "3\r\nhel\r\n") >> 20, 1U)
      << "a body may be longer";
}

TEST(EtcdHttpReply, GivesTheLinesOfAStreamAsTheyCome) {
  HttpReply reply;
  std::string line;
  EXPECT_FALSE(feed(reply, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nab\ncd\n\r\n3\r\nef"));
  ASSERT_TRUE(reply.nextLine(line));
  EXPECT_EQ(line, "ab");
  ASSERT_TRUE(reply.nextLine(line));
  EXPECT_EQ(line, "cd");
  EXPECT_FALSE(reply.nextLine(line));
  EXPECT_FALSE(feed(reply, "\n\r\n"));
  ASSERT_TRUE(reply.nextLine(line));
  EXPECT_EQ(line, "ef");
}

TEST(EtcdHttpReply, AConnectionThatEndsIsNotUsedAgain) {
  for (const char* head : {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
                           "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"}) {
    HttpReply reply;
    EXPECT_TRUE(feed(reply, head));
    EXPECT_FALSE(reply.reusable());
  }
}

TEST(EtcdHttpReply, PassesOverAnInterimReply) {
  HttpReply reply;
  EXPECT_TRUE(feed(reply, "HTTP/1.1 100 Continue\r\n\r\n" + std::string(sized)));
  EXPECT_EQ(reply.status(), 412);
}

TEST(EtcdHttpReply, WhatIsNoHttpIsRefused) {
  for (const std::string& wrong :
       {std::string("-ERR unknown command\r\n"), std::string("HTTP/2 200 OK\r\n"),
        std::string("HTTP/1.1 2x0 OK\r\n"), std::string("HTTP/1.1 200 OK\n"),
        std::string("HTTP/1.1 200 OK\r\nno colon\r\n"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n"),
        std::string(20000, 'x')}) {
    HttpReply reply;
    EXPECT_THROW((void)feed(reply, wrong, 64), StreamBroken) << wrong.substr(0, 80);
  }
}

}  // namespace
}  // namespace lockkeeper::etcd
