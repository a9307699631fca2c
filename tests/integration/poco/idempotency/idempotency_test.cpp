#include <Poco/StreamCopier.h>

#include <chrono>
#include <future>
#include <optional>
#include <sstream>

#include "idempotency_fixture.h"

// What clients see of idempotent requests.

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

TEST_F(IdempotencyTest, TheSameRequestAgainGetsTheSameAnswerWhicheverServerItReaches) {
  const Serve serve = [&](HTTPServerRequest&, HTTPServerResponse& response) {
    ++runs;
    response.set("Location", "/orders/7");
    response.add("Set-Cookie", "a=1");
    response.add("Set-Cookie", "b=2");
    response.setContentType("text/plain");
    reply(response, 201, std::string("made\0 with all bytes \xff", 22));
  };
  AppServer one(once(), serve);
  AppServer two(once(), serve);
  const CurlAnswer first = one.post("/orders/", "\"k-1\"", "{}");
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(first.header("idempotent-replayed"), "");
  for (const AppServer* server : {&one, &two}) {
    CurlAnswer again = server->post("/orders/", "\"k-1\"", "{}");
    EXPECT_EQ(again.status, 201);
    EXPECT_EQ(again.body, first.body);
    EXPECT_EQ(again.header("idempotent-replayed"), "true");
    for (const char* name : {"location", "content-type", "content-length", "set-cookie", "connection"}) {
      EXPECT_EQ(again.header(name), first.header(name)) << name;
    }
  }
  EXPECT_EQ(runs, 1);
  const std::string raw = readToEnd(
      one.send("POST /orders/ HTTP/1.1\r\nHost: 127.0.0.1\r\nIdempotency-Key: k-1\r\nConnection: close\r\n"
               "Content-Length: 2\r\n\r\n{}"));
  EXPECT_NE(raw.find("Set-Cookie: a=1\r\n"), std::string::npos) << raw;
  EXPECT_NE(raw.find("Set-Cookie: b=2\r\n"), std::string::npos) << raw;
  EXPECT_EQ(runs, 1) << "a key without quotes is the same key";
}

TEST_F(IdempotencyTest, AnotherRequestWithTheKeyIsRefused) {
  poco::IdempotencyOptions given = options("* /orders/*");
  AppServer server(once(given), counting());
  EXPECT_EQ(server.post("/orders/7", "k", "{}").body, "run 1");
  const CurlAnswer refused = server.post("/orders/7", "k", "{ }");
  EXPECT_EQ(refused.status, 422);
  EXPECT_EQ(refused.header("content-type"), "application/problem+json");
  EXPECT_EQ(server.post("/orders/8", "k", "{}").status, 422) << "path";
  EXPECT_EQ(server.post("/orders/7?all", "k", "{}").status, 422) << "query";
  EXPECT_EQ(server.post("/orders/7", "k", "{}", {"-X", "PATCH"}).status, 422) << "method";
  EXPECT_EQ(server.post("/orders/7", "other", "{ }").body, "run 2");
  EXPECT_EQ(server.post("/orders/7", "k", "{}").body, "run 1") << "the first one still stands";
  EXPECT_EQ(count(IdempotencyEvent::reused), 4);
}

TEST_F(IdempotencyTest, OfManyAtOnceExactlyOneRuns) {
  std::promise<void> gate;
  const auto opened = gate.get_future().share();
  const Serve serve = [&](HTTPServerRequest&, HTTPServerResponse& response) {
    ++runs;
    opened.wait();
    reply(response, 201, "made");
  };
  AppServer one(once(), serve);
  AppServer two(once(), serve);
  std::vector<std::future<CurlAnswer>> answers;
  for (int i = 0; i < 12; ++i) {
    answers.push_back(
        std::async(std::launch::async, [&, i] { return (i % 2 ? one : two).post("/orders/", "k", "{}"); }));
  }
  const bool elevenRefused = waitUntil([&] { return count(IdempotencyEvent::inFlight) == 11; });
  gate.set_value();
  EXPECT_TRUE(elevenRefused);
  int made = 0;
  for (auto& each : answers) {
    const CurlAnswer answer = each.get();
    made += answer.status == 201;
    if (answer.status == 201) continue;
    EXPECT_EQ(answer.status, 409);
    EXPECT_EQ(answer.header("retry-after"), "1");
    EXPECT_EQ(answer.header("content-type"), "application/problem+json");
  }
  EXPECT_EQ(made, 1);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(one.post("/orders/", "k", "{}").status, 201);
  EXPECT_EQ(runs, 1);
}

TEST_F(IdempotencyTest, AKeyIsNeededAndMustBeOne) {
  AppServer server(once(), counting());
  const auto statusOf = [&](std::vector<std::string> fields) {
    for (std::size_t i = 0; i < fields.size(); i += 2)
      fields.insert(fields.begin() + static_cast<long>(i), "-H");
    fields.insert(fields.end(), {"--data", "x"});
    return server.ask("/orders/", fields).status;
  };
  EXPECT_EQ(statusOf({}), 400) << "none";
  EXPECT_EQ(statusOf({"Idempotency-Key;"}), 400) << "an empty one";
  EXPECT_EQ(statusOf({"Idempotency-Key: \"\""}), 400);
  EXPECT_EQ(statusOf({"Idempotency-Key: \"open"}), 400);
  EXPECT_EQ(statusOf({"Idempotency-Key: \"a\"b"}), 400);
  EXPECT_EQ(statusOf({"Idempotency-Key: a, b"}), 400);
  EXPECT_EQ(statusOf({"Idempotency-Key: \xc3\xa4"}), 400);
  EXPECT_EQ(statusOf({"Idempotency-Key: a", "Idempotency-Key: a"}), 400) << "two";
  EXPECT_EQ(statusOf({"Idempotency-Key: " + std::string(256, 'k')}), 400);
  EXPECT_EQ(statusOf({"Idempotency-Key: " + std::string(10'000, 'k')}), 400);
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(statusOf({"Idempotency-Key: " + std::string(255, 'k')}), 201);
  EXPECT_EQ(statusOf({"Idempotency-Key: \"a \\\"b\\\\\""}), 201);
  EXPECT_EQ(server.ask("/orders/", {"-X", "DELETE"}).status, 201) << "no route is for it";
  EXPECT_EQ(server.ask("/orders/").status, 201) << "GET";
  EXPECT_EQ(server.ask("/other", {"--data", "x"}).status, 201);
}

TEST_F(IdempotencyTest, WhereNoKeyIsNeededRequestsWithoutPass) {
  poco::IdempotencyOptions given = options();
  given.routes.front().required = false;
  AppServer server(once(given), counting());
  EXPECT_EQ(server.ask("/orders/", {"--data", "x"}).body, "run 1");
  EXPECT_EQ(server.ask("/orders/", {"--data", "x"}).body, "run 2");
  EXPECT_EQ(server.post("/orders/", "k", "x").body, "run 3");
  EXPECT_EQ(server.post("/orders/", "k", "x").body, "run 3");
}

TEST_F(IdempotencyTest, TheHandlerReadsTheBodyAndALongOneIsRefused) {
  poco::IdempotencyOptions given = options();
  given.maxBody = 5000;
  AppServer server(once(given), [&](HTTPServerRequest& request, HTTPServerResponse& response) {
    ++runs;
    std::string body;
    Poco::StreamCopier::copyToString(request.stream(), body);
    EXPECT_EQ(&request.response(), &response);
    reply(response, 200, body);
  });
  const std::string longest(5000, 'b');
  EXPECT_EQ(server.post("/orders/", "a", longest).body, longest);
  EXPECT_EQ(server.post("/orders/", "b", longest, {"-H", "Transfer-Encoding: chunked"}).body, longest);
  EXPECT_EQ(server.post("/orders/", "b", longest, {"-H", "Transfer-Encoding: chunked"}).body, longest);
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(server.post("/orders/", "c", longest + "b").status, 413);
  EXPECT_EQ(server.post("/orders/", "d", longest + "b", {"-H", "Transfer-Encoding: chunked"}).status, 413);
  EXPECT_EQ(runs, 2);
}

TEST_F(IdempotencyTest, ARequestWithoutALengthHasAnEmptyBody) {
  AppServer server(once(), [&](HTTPServerRequest& request, HTTPServerResponse& response) {
    ++runs;
    std::string body;
    Poco::StreamCopier::copyToString(request.stream(), body);
    reply(response, 201, "read " + std::to_string(body.size()));
  });
  auto client = server.send("POST /orders/ HTTP/1.1\r\nConnection: close\r\nIdempotency-Key: k\r\n\r\n");
  EXPECT_TRUE(readToEnd(client).ends_with("\r\n\r\nread 0"));
  EXPECT_EQ(runs, 1);
}

TEST_F(IdempotencyTest, ABodyThatWasCutOffIsNotCarriedOut) {
  AppServer server(once(), counting());
  const std::string head = "POST /orders/ HTTP/1.1\r\nIdempotency-Key: k\r\n";
  for (const char* const rest :
       {"Content-Length: 100\r\n\r\n{\"half\":", "Transfer-Encoding: chunked\r\n\r\n8\r\n{\"half\":\r\n"}) {
    auto client = server.send(head + rest);
    client.shutdownSend();
    char answer[512];
    while (client.receiveBytes(answer, sizeof answer) > 0) {
    }
  }
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(server.post("/orders/", "k", "{}").body, "run 1") << "the key is not used up";
}

TEST_F(IdempotencyTest, ABodyThatDoesNotComeInTimeIsNotCarriedOut) {
  poco::IdempotencyOptions given = options();
  given.bodyTimeout = std::chrono::milliseconds{100};
  AppServer server(once(given), counting());
  const std::string answer = readToEnd(
      server.send("POST /orders/ HTTP/1.1\r\nIdempotency-Key: k\r\nContent-Length: 100\r\n\r\n{\"half\":"));
  EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 408") << answer;
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(server.post("/orders/", "k", "{}").body, "run 1") << "the key is not used up";
}

TEST_F(IdempotencyTest, NoClientIsGivenTheAnswerOfAnother) {
  AppServer server(once(options("POST /orders/*", "header X-User")),
                   [&](HTTPServerRequest& request, HTTPServerResponse& response) {
                     reply(response, 200, "for " + request.get("X-User", "nobody"));
                   });
  const auto as = [&](const std::string& user) {
    return server.post("/orders/", "the-key", "{}", {"-H", "X-User: " + user}).body;
  };
  EXPECT_EQ(as("the-secret-of-a"), "for the-secret-of-a");
  EXPECT_EQ(as("the-secret-of-b"), "for the-secret-of-b");
  EXPECT_EQ(as("the-secret-of-a"), "for the-secret-of-a");
  const std::string keys = redis.command({"KEYS", "*"});
  EXPECT_EQ(keys.find("secret"), std::string::npos) << keys;
  EXPECT_EQ(keys.find("the-key"), std::string::npos) << keys;
}

TEST_F(IdempotencyTest, ARequestFromNobodyKnownIsGivenNoAnswerOfOthers) {
  for (const std::string client : {"header X-User", "user"}) {
    for (const bool required : {true, false}) {
      runs = 0;
      poco::IdempotencyOptions given = options();
      given.routes.front().client = client;
      given.routes.front().required = required;
      given.clients.user = [](const HTTPServerRequest& request) { return request.get("X-User", ""); };
      AppServer server(once(given), [&](HTTPServerRequest& request, HTTPServerResponse& response) {
        std::string body;
        Poco::StreamCopier::copyToString(request.stream(), body);
        reply(response, 200, body + std::to_string(++runs));
      });
      for (const std::string field : {"X-User;", "X-Other: ann"}) {
        for (int i = 0; i < 2; ++i) {
          const CurlAnswer answer = server.post("/orders/", "k", "{}", {"-H", field});
          EXPECT_EQ(answer.status, required ? 400 : 200) << client << " " << field;
          EXPECT_EQ(answer.header("idempotent-replayed"), "");
          if (!required) {
            EXPECT_EQ(answer.body, "{}" + std::to_string(runs));
          }
        }
      }
      EXPECT_EQ(runs, required ? 0 : 4) << client;
    }
  }
}

TEST_F(IdempotencyTest, TheHostCountsUnlessItIsConfiguredAway) {
  for (const bool perHost : {true, false}) {
    runs = 0;
    poco::IdempotencyOptions given = options();
    given.routes.front().name = perHost ? "each" : "all";
    given.perHost = perHost;
    AppServer server(once(given), counting());
    const auto at = [&](const std::string& host) {
      return server.post("/orders/", "k", "{}", {"-H", "X-User: ann", "-H", "Host: " + host}).body;
    };
    EXPECT_EQ(at("one.example"), "run 1");
    EXPECT_EQ(at("ONE.example:8080"), "run 1");
    EXPECT_EQ(at("two.example"), perHost ? "run 2" : "run 1");
    const std::string raw = readToEnd(
        server.send("POST http://two.example/orders/ HTTP/1.1\r\nHost: one.example\r\nX-User: ann\r\n"
                    "Idempotency-Key: k\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"));
    EXPECT_EQ(raw.substr(0, 12), "HTTP/1.1 422")
        << "the target's host counts, and another target is another request";
  }
}

TEST_F(IdempotencyTest, OneClientDoesNotTakeTheRoomOfTheOthers) {
  poco::IdempotencyOptions given = options("POST /orders/*", "header X-User");
  given.maxStored = 1'000'000;
  given.maxStoredPerClient = 250'000;
  AppServer server(once(given), answeringWith(100'000));
  const auto status = [&](const std::string& user, const std::string& key) {
    return server.post("/orders/", key, "{}", {"-H", "X-User: " + user}).status;
  };
  for (int i = 0; i < 20; ++i) EXPECT_EQ(status("greedy", std::to_string(i)), 201);
  EXPECT_EQ(status("greedy", "1"), 201) << "its first ones are kept";
  EXPECT_EQ(status("greedy", "2"), 409) << "of the others it is known that they ran";
  for (const std::string key : {"1", "2", "1", "2"}) EXPECT_EQ(status("ann", key), 201);
  EXPECT_EQ(runs, 22);
}

TEST_F(IdempotencyTest, OneClientDoesNotFillTheStoreWithFacts) {
  poco::IdempotencyOptions given = options("POST /orders/*", "header X-User");
  given.maxStoredPerClient = 0;  // and 64 KiB for facts
  given.routes.push_back({.name = "shop", .match = "POST /shops/*", .client = "header X-Shop"});
  AppServer server(once(given), counting());
  std::string requests;
  for (int i = 0; i < 300; ++i) {
    requests +=
        "POST /orders/ HTTP/1.1\r\nHost: x\r\nX-User: greedy\r\nContent-Length: 0\r\nIdempotency-Key: " +
        std::to_string(i) + (i == 299 ? "\r\nConnection: close\r\n\r\n" : "\r\n\r\n");
  }
  const std::string answers = readToEnd(server.send(requests));
  EXPECT_NE(answers.find("HTTP/1.1 429"), answers.npos);
  EXPECT_EQ(runs, 65'536 / 300 + 1) << "what is refused is not carried out";
  EXPECT_EQ(server.post("/orders/", "1", "{}", {"-H", "X-User: ann"}).status, 201);
  EXPECT_EQ(server.post("/shops/", "1", "{}", {"-H", "X-Shop: greedy"}).status, 201)
      << "a shop of that name is another client";
}

TEST_F(IdempotencyTest, FactsTakeNoRoomOfWholeAnswers) {
  poco::IdempotencyOptions given = options("POST /orders/*", "header X-User");
  given.maxAnswer = 2000;
  given.maxStored = 4000;
  AppServer server(once(given), [&](HTTPServerRequest& request, HTTPServerResponse& response) {
    ++runs;
    reply(response, 201, std::string(std::stoul(request.get("X-Size")), 'b'));
  });
  const auto status = [&](const std::string& user, const std::string& key, const std::string& size) {
    return server.post("/orders/", key, "{}", {"-H", "X-User: " + user, "-H", "X-Size: " + size}).status;
  };
  for (int i = 0; i < 15; ++i) EXPECT_EQ(status("greedy", std::to_string(i), "2100"), 201);
  EXPECT_EQ(status("greedy", "0", "2100"), 409) << "only the fact is kept";
  EXPECT_EQ(status("ann", "k", "1500"), 201);
  EXPECT_EQ(status("ann", "k", "1500"), 201) << "kept whole";
  EXPECT_EQ(runs, 16);
}

TEST_F(IdempotencyTest, OnlyFinalAnswersAreKept) {
  std::atomic<int> status = 0;
  AppServer server(once(), [&](HTTPServerRequest&, HTTPServerResponse& response) {
    reply(response, status, "run " + std::to_string(++runs));
  });
  for (const int each : {401, 409, 423, 425, 429, 500, 503}) {
    status = each;
    EXPECT_EQ(server.post("/orders/", "not" + std::to_string(each), "{}").status, each);
    status = 200;
    EXPECT_EQ(server.post("/orders/", "not" + std::to_string(each), "{}").status, 200) << each;
  }
  for (const int each : {200, 202, 303, 400, 404, 422}) {
    status = each;
    EXPECT_EQ(server.post("/orders/", "yes" + std::to_string(each), "{}").status, each);
    status = 200;
    EXPECT_EQ(server.post("/orders/", "yes" + std::to_string(each), "{}").status, each);
  }
}

TEST_F(IdempotencyTest, AnswersWithoutABodyAndThoseOfFilesAreReplayed) {
  const TempFolder folder;
  writeFile(folder / "file", "from a file");
  AppServer server(once(), [&](HTTPServerRequest& request, HTTPServerResponse& response) {
    ++runs;
    const std::string& target = request.getURI();
    if (target == "/orders/empty") {
      response.setStatusAndReason(Poco::Net::HTTPResponse::HTTP_NO_CONTENT);
      response.send();
    } else if (target == "/orders/file") {
      response.sendFile(folder / "file", "text/x-file");
    } else if (target == "/orders/elsewhere") {
      response.redirect("/there", Poco::Net::HTTPResponse::HTTP_SEE_OTHER);
    } else {
      response.setChunkedTransferEncoding(true);
      response.send() << "piece " << 7 << std::flush << '.';
    }
  });
  for (int i = 0; i < 2; ++i) {
    const CurlAnswer empty = server.post("/orders/empty", "a", "{}");
    EXPECT_EQ(empty.status, 204);
    EXPECT_EQ(empty.header("content-length"), "");
    const CurlAnswer file = server.post("/orders/file", "b", "{}");
    EXPECT_EQ(file.body, "from a file");
    EXPECT_EQ(file.header("content-type"), "text/x-file");
    EXPECT_NE(file.header("last-modified"), "");
    const CurlAnswer elsewhere = server.post("/orders/elsewhere", "c", "{}");
    EXPECT_EQ(elsewhere.status, 303);
    EXPECT_EQ(elsewhere.header("location"), "/there");
    EXPECT_EQ(server.post("/orders/pieces", "d", "{}").body, "piece 7.");
  }
  EXPECT_EQ(runs, 4);
}

TEST_F(IdempotencyTest, AnAnswerThatIsTooLongIsSentOnceAndNeverRunAgain) {
  const std::string body(3U << 20, 'b');
  AppServer server(once(), [&](HTTPServerRequest&, HTTPServerResponse& response) {
    ++runs;
    response.setStatusAndReason(Poco::Net::HTTPResponse::HTTP_CREATED);
    response.set("Location", "/orders/7");
    response.setChunkedTransferEncoding(true);
    std::ostream& stream = response.send();
    for (std::size_t at = 0; at < body.size(); at += 100'000) stream << body.substr(at, 100'000);
  });
  const CurlAnswer first = server.post("/orders/long", "k", "{}");
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(first.header("location"), "/orders/7");
  EXPECT_TRUE(first.body == body) << first.body.size();
  const CurlAnswer again = server.post("/orders/long", "k", "{}");
  EXPECT_EQ(again.status, 409);
  EXPECT_NE(again.body.find("answered with 201"), std::string::npos) << again.body;
  EXPECT_EQ(server.post("/orders/long", "k", "{ }").status, 422);
  EXPECT_EQ(runs, 1);
}

TEST_F(IdempotencyTest, TheLimitOfAnswersCountsTheirFieldsToo) {
  poco::IdempotencyOptions given = options();
  given.maxAnswer = 4096;
  AppServer server(once(given), [&](HTTPServerRequest& request, HTTPServerResponse& response) {
    ++runs;
    response.set("X-Long", std::string(std::stoul(request.get("X-Size")), 'f'));
    reply(response, 201, std::string(2000, 'b'));
  });
  const auto status = [&](const std::string& size) {
    return server.post("/orders/", size, "{}", {"-H", "X-Size: " + size}).status;
  };
  EXPECT_EQ(status("1900"), 201);
  EXPECT_EQ(status("1900"), 201);
  EXPECT_EQ(status("2100"), 201);
  EXPECT_EQ(status("2100"), 409);
  EXPECT_EQ(runs, 2);
}

TEST_F(IdempotencyTest, WholeAnswersTakeNoMoreOfTheStoreThanTheyMay) {
  poco::IdempotencyOptions given = options();
  given.maxStored = 300'000;
  given.routes.front().keepFor = 1h;
  AppServer server(once(given), answeringWith(100'000));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(server.post("/orders/", std::to_string(i), "{}").status, 201);
  EXPECT_EQ(server.post("/orders/", "0", "{}").status, 201) << "those that came first are kept";
  EXPECT_EQ(server.post("/orders/", "9", "{}").status, 409) << "of the others it is known that they ran";
  EXPECT_EQ(runs, 10);
  long bytes = 0;
  std::istringstream keys(redis.command({"KEYS", ":lockkeeper:v:*"}));
  for (std::string key; std::getline(keys, key);) bytes += std::stol(redis.command({"STRLEN", key}));
  EXPECT_LT(bytes, 310'000);
}

TEST_F(IdempotencyTest, WhatHasEndedMakesRoomForOtherAnswers) {
  poco::IdempotencyOptions given = options();
  given.maxStored = 150'000;
  given.routes.front().keepFor = 300ms;
  AppServer server(once(given), answeringWith(100'000));
  const auto isKeptWhole = [&] {
    const std::string key = "k" + std::to_string(runs);
    EXPECT_EQ(server.post("/orders/", key, "{}").status, 201);
    return server.post("/orders/", key, "{}").status == 201;
  };
  EXPECT_TRUE(isKeptWhole());
  EXPECT_TRUE(waitUntil(isKeptWhole));
}

TEST_F(IdempotencyTest, AnswersAreForgottenAfterTheirTime) {
  poco::IdempotencyOptions given = options();
  given.routes.front().keepFor = 300ms;
  given.keyNamespace = "shop";
  AppServer server(once(given), counting());
  EXPECT_EQ(server.post("/orders/", "k", "{}").body, "run 1");
  EXPECT_NE(redis.command({"KEYS", ":lockkeeper:v:shop:idempotency/order/*"}), "");
  EXPECT_TRUE(waitUntil([&] { return server.post("/orders/", "k", "{}").body != "run 1"; }));
}

TEST_F(IdempotencyTest, OtherOptionsAreForRequestsThatComeThen) {
  std::optional<poco::Idempotency> once;
  poco::IdempotencyOptions given = options();
  given.isFinal = [](int status) { return status == 299; };
  const auto wrap = [&](Factory handlers) {
    once.emplace(managerOn(redis.uri()), valuesOn(redis.uri()), given);
    return once->wrap(std::move(handlers));
  };
  AppServer server(wrap, counting(299));
  EXPECT_EQ(server.post("/orders/", "k", "{}").body, "run 1");
  EXPECT_EQ(server.post("/payments/", "k", "{}").body, "run 2") << "no route";

  poco::IdempotencyOptions other = options("POST /payments/*");
  other.routes.push_back(given.routes.front());
  other.routes.front().name = "payment";
  other.report = nullptr;
  once->reload(other);
  EXPECT_EQ(server.post("/payments/", "k", "{}").body, "run 3");
  EXPECT_EQ(server.post("/payments/", "k", "{}").body, "run 3")
      << "hooks that are not set stay: 299 is final";
  EXPECT_EQ(server.post("/orders/", "k", "{}").body, "run 1") << "answers that were kept stay";
  EXPECT_EQ(count(IdempotencyEvent::replayed), 2) << "and so does the report";

  other.keyNamespace = "shop";
  once->reload(other);
  EXPECT_EQ(server.post("/orders/", "k", "{}").body, "run 1") << "so does the namespace, with the answers";

  other.routes.front().match = "GET /payments";
  EXPECT_THROW(once->reload(other), std::invalid_argument);
  EXPECT_EQ(server.post("/payments/", "k", "{}").body, "run 3") << "the old options stay";
  EXPECT_EQ(runs, 3);
}

}  // namespace
}  // namespace lockkeeper::test
