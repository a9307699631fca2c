#include <Poco/StreamCopier.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "app_server.h"
#include "lockkeeper/memory/memory_driver.h"
#include "lockkeeper/poco/health_handler.h"
#include "lockkeeper/poco/idempotency.h"
#include "lockkeeper/poco/lock_console.h"
#include "lockkeeper/poco/metrics_handler.h"
#include "lockkeeper/poco/rate_limit_filter.h"
#include "lockkeeper/poco/request_locks.h"
#include "lockkeeper/store_registry.h"
#include "wait_until.h"

// Where a request ends on its connection.

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using Wrap = std::function<Factory(Factory)>;

const std::string put = "PUT /orders/7 HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\n";
const std::string last =
    "PUT /orders/9 HTTP/1.1\r\nHost: x\r\nIdempotency-Key: l\r\nConnection: close\r\n\r\n";

Wrap locked() {
  return [](Factory handlers) {
    return poco::RequestLocks(std::make_shared<LockManager>(std::make_shared<MemoryDriver>()),
                              {.routes = {{.name = "order", .match = "PUT /orders/{id}", .by = "path id"}}})
        .wrap(std::move(handlers));
  };
}

Wrap once() {
  return [](Factory handlers) {
    poco::IdempotencyOptions options;
    options.routes = {{.name = "order", .match = "PUT /orders/{id}", .client = "all"}};
    return poco::Idempotency(std::make_shared<LockManager>(std::make_shared<MemoryDriver>()),
                             std::make_shared<MemoryValues>(), options)
        .wrap(std::move(handlers));
  };
}

Wrap limited(const std::string& source) {
  return [source](Factory handlers) {
    poco::RateLimitOptions options;
    options.policies.emplace("many", RatePolicy::parse("many", {{"rate", "1000000/s"}}));
    options.routes = {{.name = "order", .match = "PUT /orders/{id}", .limits = {{"many", source}}}};
    return poco::RateLimitFilter(std::make_shared<RateLimiter>(StoreRegistry().openRates("memory:")), options)
        .wrap(std::move(handlers));
  };
}

std::vector<Wrap> allFilters() { return {locked(), once(), limited("all"), limited("json name")}; }

/// Which requests have reached the application, and with which bodies.
class Journal {
 public:
  Serve reading() {
    return [this](HTTPServerRequest& request, HTTPServerResponse& response) {
      std::string body;
      if (request.hasContentLength() || request.getChunkedTransferEncoding()) {
        Poco::StreamCopier::copyToString(request.stream(), body);
      }
      note(request.getURI() + " " + body);
      request.stream().bad() ? reply(response, 400, "bad") : reply(response, 200, "read");
    };
  }
  Serve readingNothing() {
    return [this](HTTPServerRequest& request, HTTPServerResponse& response) {
      note(request.getURI());
      reply(response, 200, "unread");
    };
  }
  std::vector<std::string> lines() const {
    const std::lock_guard held(mutex_);
    return lines_;
  }

 private:
  void note(const std::string& line) {
    const std::lock_guard held(mutex_);
    lines_.push_back(line);
  }

  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

std::size_t answersIn(const std::string& bytes) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = bytes.find("HTTP/1.1 ", at)) != bytes.npos; ++at) ++count;
  return count;
}

TEST(Framing, ARequestWithoutAClearEndIsRefusedAndNothingBehindItIsServed) {
  for (const Wrap& wrap : allFilters()) {
    Journal journal;
    const AppServer server(wrap, journal.reading());
    for (const std::string fields :
         {"Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: xchunked\r\n",
          "Transfer-Encoding: chunked, chunked\r\n", "Transfer-Encoding: identity\r\n",
          "Transfer-Encoding:\r\n", "Transfer-Encoding: \"chunked\"\r\n",
          "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
          "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n",
          "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
          "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding : chunked\r\n",
          "Content-Length : 5\r\n", "Content-Length: 5\r\nContent-Length: 0\r\n",
          "Content-Length: 0\r\nContent-Length: 5\r\n", "Content-Length: -5\r\n", "Content-Length: +5\r\n",
          "Content-Length: 1234567890123456789\r\n"}) {
      const std::string answer = readToEnd(server.send(put + fields + "\r\n0\r\n\r\n" + last));
      EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 400") << fields << answer;
      EXPECT_EQ(answersIn(answer), 1U) << fields << answer;
    }
    EXPECT_EQ(journal.lines(), std::vector<std::string>{});
  }
}

TEST(Framing, AChunkThatIsNotValidEndsTheConnection) {
  for (const Wrap& wrap : allFilters()) {
    Journal journal;
    const AppServer server(wrap, journal.reading());
    for (const std::string body :
         {"x\r\n", "\r\n", "-1\r\n", "+1\r\na\r\n", "0x1\r\na\r\n", "1 \r\na\r\n", " 1\r\na\r\n", "1\na\r\n",
          "g\r\n", "fffffffffffffffff\r\n", "10000000000000000\r\n", "1\r\nab", "1\r\na\n0\r\n\r\n",
          "1;a\rb\r\na\r\n", "1\r\na\r\n\xff\r\n", "0\r\nX: y\n\r\n"}) {
      const std::string answer =
          readToEnd(server.send(put + "Transfer-Encoding: chunked\r\n\r\n" + body + last));
      EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 400") << body << answer;
      EXPECT_EQ(answersIn(answer), 1U) << body << answer;
    }
    for (const std::string& line : journal.lines()) EXPECT_TRUE(line.starts_with("/orders/7 ")) << line;
  }
}

TEST(Framing, AChunkedBodyEndsWhereItEnds) {
  for (const Wrap& wrap : allFilters()) {
    Journal journal;
    const AppServer server(wrap, journal.reading());
    const std::string body =
        "3;name=\"v\"\r\n{\r\n\r\n000D \t;x\r\n\"name\":\"ann\"}\r\n0\r\nX-Sum: 1\r\n\r\n";
    const std::string answer =
        readToEnd(server.send(put + "transfer-encoding: Chunked\r\n\r\n" + body + last));
    EXPECT_EQ(answersIn(answer), 2U) << answer;
    EXPECT_EQ(journal.lines(), (std::vector<std::string>{"/orders/7 {\r\n\"name\":\"ann\"}", "/orders/9 "}));
  }
}

TEST(Framing, ABodyThatTheHandlerDoesNotReadIsNotTheNextRequest) {
  const std::string smuggled = "PUT /orders/8 HTTP/1.1\r\nHost: x\r\nIdempotency-Key: s\r\n\r\n";
  const std::string length = "Content-Length: " + std::to_string(smuggled.size()) + "\r\n\r\n" + smuggled;
  const std::string chunks = "Transfer-Encoding: chunked\r\n\r\n37\r\n" + smuggled + "\r\n0\r\n\r\n";
  ASSERT_EQ(smuggled.size(), 0x37U);
  for (const Wrap& wrap : allFilters()) {
    for (const std::string& rest : {length, chunks}) {
      Journal journal;
      const AppServer server(wrap, journal.readingNothing());
      const std::string answer = readToEnd(server.send(put + rest + last));
      EXPECT_EQ(journal.lines(), (std::vector<std::string>{"/orders/7", "/orders/9"})) << answer;
      EXPECT_EQ(answersIn(answer), 2U) << answer;
    }
    Journal journal;
    const AppServer server(wrap, journal.readingNothing());
    EXPECT_EQ(answersIn(readToEnd(server.send(last))), 1U);
  }
}

TEST(Framing, NoAnswerIsReplayedForABodyThatIsNotValid) {
  Journal journal;
  const AppServer server(once(), journal.reading());
  const auto answerTo = [&](const std::string& rest) {
    return readToEnd(server.send(put + "Connection: close\r\n" + rest)).substr(0, 12);
  };
  EXPECT_EQ(answerTo("\r\n"), "HTTP/1.1 200");
  EXPECT_EQ(answerTo("\r\n"), "HTTP/1.1 200") << "replayed";
  EXPECT_EQ(answerTo("Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(answerTo("Transfer-Encoding: chunked\r\n\r\nx\r\n{}\r\n0\r\n\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(answerTo("Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"), "HTTP/1.1 422");
  EXPECT_EQ(journal.lines().size(), 1U);
}

TEST(Framing, AClientMayCloseItsSideBehindAWholeBody) {
  for (const Wrap& wrap : {once(), limited("json name")}) {
    Journal journal;
    const AppServer server(wrap, journal.reading());
    for (const std::string rest :
         {"Content-Length: 2\r\n\r\n{}", "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"}) {
      auto client = server.send(put + rest);
      client.shutdownSend();
      EXPECT_EQ(readToEnd(client).substr(0, 12), "HTTP/1.1 200") << rest;
    }
  }
}

TEST(Framing, WhatComesLaterOfABodyInWhichTheHandlerHasFoundNoNumberIsNoRequest) {
  for (const Wrap& wrap : {locked(), limited("all")}) {
    Journal journal;
    const AppServer server(wrap, [&](HTTPServerRequest& request, HTTPServerResponse& response) {
      int number = 0;
      if (request.hasContentLength()) request.stream() >> number;
      journal.readingNothing()(request, response);
    });
    const std::string inner = "PUT /inner HTTP/1.1\r\nHost: x\r\n\r\n";
    const std::string length = std::to_string(1 + inner.size());
    Poco::Net::StreamSocket socket = server.send(put + "Content-Length: " + length + "\r\n\r\nx");
    ASSERT_TRUE(waitUntil([&] { return !journal.lines().empty(); }));
    try {
      const std::string rest = inner + last;
      socket.sendBytes(rest.data(), static_cast<int>(rest.size()));
      (void)readToEnd(socket);
    } catch (const Poco::Exception&) {  // the server has closed the connection
    }
    for (const std::string& line : journal.lines()) EXPECT_NE(line, "/inner");
  }
}

/// Handlers of the library that read no body.
struct OwnHandler {
  std::string target;
  Wrap wrap;
};

std::vector<OwnHandler> allOwnHandlers() {
  const auto locks = std::make_shared<LockManager>(std::make_shared<MemoryDriver>());
  const Wrap health = [locks](Factory handlers) {
    return poco::serveHealth({.locks = locks}, std::move(handlers));
  };
  const Wrap metrics = [](Factory handlers) {
    return poco::serveMetrics(std::make_shared<poco::Metrics>(), std::move(handlers));
  };
  const Wrap console = [](Factory handlers) {
    return poco::LockConsole(std::make_shared<MemoryDriver>(), {}).wrap(std::move(handlers));
  };
  return {{"/health/live", health}, {"/health/ready", health},  {"/metrics", metrics},
          {"/locks/", console},     {"/locks/state", console},  {"/locks", console},
          {"/locks/no", console},   {"/locks/health", console}, {"/locks/activity", console}};
}

TEST(Framing, NothingInABodyThatTheLibrarysOwnHandlersDoNotReadIsServed) {
  for (const auto& [target, wrap] : allOwnHandlers()) {
    // The console closes the connections of what its page asks for again and again.
    const bool staysOpen =
        target != "/locks/state" && target != "/locks/health" && target != "/locks/activity";
    Journal journal;
    const AppServer server(wrap, journal.readingNothing());
    const std::string head = "GET " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\n";
    const std::string inner = "GET /inner HTTP/1.1\r\nHost: x\r\n\r\n";
    for (const std::string& body : {"Content-Length: " + std::to_string(inner.size()) + "\r\n\r\n" + inner,
                                    "Transfer-Encoding: chunked\r\n\r\n20\r\n" + inner + "\r\n0\r\n\r\n"}) {
      const std::string answer = readToEnd(server.send(head + body + last));
      EXPECT_EQ(answersIn(answer), staysOpen ? 2U : 1U) << target << answer;
    }
    for (const std::string fields :
         {"Transfer-Encoding: xchunked\r\n", "Content-Length: 5\r\nContent-Length: 0\r\n"}) {
      const std::string answer = readToEnd(server.send(head + fields + "\r\n" + inner));
      EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 400") << target << answer;
    }
    EXPECT_EQ(journal.lines(), std::vector<std::string>(staysOpen ? 2 : 0, "/orders/9")) << target;
  }
}

TEST(Framing, AnUploadThatTheLibrarysOwnHandlersDoNotReadGetsItsAnswer) {
  for (const auto& [target, wrap] : allOwnHandlers()) {
    if (target == "/locks") continue;  // a redirection, which Poco sends by itself
    const AppServer server(wrap, [](HTTPServerRequest&, HTTPServerResponse&) {});
    Poco::Net::StreamSocket socket =
        server.send("GET " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4194304\r\n\r\n");
    const std::string part(65536, 'x');
    try {
      for (int sent = 0; sent < 48; ++sent) socket.sendBytes(part.data(), static_cast<int>(part.size()));
    } catch (const Poco::Exception&) {  // nobody reads the rest
    }
    const std::string answer = readToEnd(socket);
    EXPECT_EQ(answersIn(answer), 1U) << target << answer;
  }
}

}  // namespace
}  // namespace lockkeeper::test
