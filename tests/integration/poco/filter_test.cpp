#include <Poco/Logger.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/StreamSocket.h>
#include <Poco/URI.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "captured_log.h"
#include "limited_server.h"
#include "lockkeeper/poco/metrics.h"
#include "prometheus_text.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

const std::string perPhoneAndTotal =
    "lockkeeper.limits.perPhone.rate = 2/h\n"
    "lockkeeper.limits.total.rate = 5/h\n"
    "lockkeeper.http.routes.sms.match = POST /sms\n"
    "lockkeeper.http.routes.sms.limits.perPhone = json phone\n"
    "lockkeeper.http.routes.sms.limits.total = all\n";

const std::string perAddress =
    "lockkeeper.limits.perAddress.rate = 1/h\n"
    "lockkeeper.http.routes.all.match = * /*\n"
    "lockkeeper.http.routes.all.limits.perAddress = address\n";

std::string perUser(const std::string& source) {
  return "lockkeeper.limits.perUser.rate = 1/h\n"
         "lockkeeper.http.routes.all.match = * /*\n"
         "lockkeeper.http.routes.all.limits.perUser = " +
         source + "\n";
}

TEST(RateLimitFilter, RefusesWithEverythingThatAClientNeeds) {
  const LimitedServer server("memory:", perPhoneAndTotal);
  const std::string ann = R"({"phone":"+491","text":"hi"})";
  const CurlAnswer first = server.post("/sms", ann);
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.header("ratelimit-policy"), R"("perPhone";q=2;w=3600, "total";q=5;w=3600)");
  EXPECT_EQ(first.header("ratelimit"), R"("perPhone";r=1;t=1800, "total";r=4;t=720)");
  EXPECT_EQ(first.header("retry-after"), "");
  EXPECT_EQ(server.post("/sms", ann).status, 200);

  const CurlAnswer refused = server.post("/sms", ann);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.header("content-type"), "application/problem+json");
  EXPECT_EQ(refused.header("ratelimit-policy"), R"("perPhone";q=2;w=3600, "total";q=5;w=3600)");
  const int seconds = std::stoi(refused.header("retry-after"));
  EXPECT_GT(seconds, 1700);
  EXPECT_LE(seconds, 1800);
  const std::string text = std::to_string(seconds);
  EXPECT_EQ(refused.header("ratelimit"), "\"perPhone\";r=0;t=" + text);
  EXPECT_EQ(refused.body,
            R"({"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",)"
            R"("title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,)"
            R"("detail":"Try again in )" +
                text + R"( s.","violated-policies":["perPhone"]})");
  EXPECT_EQ(server.served(), 2) << "what is refused does not reach the application";
}

TEST(RateLimitFilter, ARefusedRequestChargesNobody) {
  const LimitedServer server("memory:", perPhoneAndTotal);
  for (int i = 0; i < 10; ++i) server.post("/sms", R"({"phone":"+491"})");
  EXPECT_EQ(server.served(), 2);
  for (const char* phone : {"+492", "+493", "+494"}) {
    EXPECT_EQ(server.post("/sms", R"({"phone":")" + std::string(phone) + R"("})").status, 200) << phone;
  }
  const CurlAnswer refused = server.post("/sms", R"({"phone":"+495"})");
  EXPECT_EQ(refused.status, 429);
  EXPECT_NE(refused.body.find(R"("violated-policies":["total"])"), std::string::npos) << refused.body;
}

TEST(RateLimitFilter, TheHandlerStillReadsTheBody) {
  const LimitedServer server("memory:", perPhoneAndTotal);
  std::string body = R"({"phone":"+491","text":")" + std::string(9000, 'x') + R"("})";
  const CurlAnswer answer = server.post("/sms", body, {"--header", "Content-Type: application/json"});
  EXPECT_EQ(answer.body, body);
  EXPECT_EQ(answer.header("x-content-type"), "application/json");
  const CurlAnswer chunked = server.post("/sms", body, {"--header", "Transfer-Encoding: chunked"});
  EXPECT_EQ(chunked.body, body);
}

TEST(RateLimitFilter, ABodyOfWhichAHandlerMayReadAnotherKeyIsRefused) {
  const LimitedServer server("memory:", perPhoneAndTotal);
  const LimitedServer watching("memory:", perPhoneAndTotal + "lockkeeper.http.dryRun = on\n");
  for (const char* body : {R"({"phone":49170.00001})", R"({"phone":"+491","phone":"+492"})"}) {
    const CurlAnswer refused = server.post("/sms", body);
    EXPECT_EQ(refused.status, 400) << body;
    EXPECT_EQ(refused.header("content-type"), "application/problem+json");
    EXPECT_EQ(watching.post("/sms", body).body, body);
  }
  EXPECT_EQ(server.served(), 0);
}

TEST(RateLimitFilter, ABodyThatIsTooLongToCountIsRefused) {
  const LimitedServer server("memory:", perPhoneAndTotal + "lockkeeper.http.maxBody = 1000\n");
  for (const std::size_t size : {2000U, 90000U}) {
    const std::string body = R"({"phone":"+491","text":")" + std::string(size, 'x') + R"("})";
    EXPECT_EQ(server.post("/sms", body).status, 413);
    EXPECT_EQ(server.post("/sms", body, {"--header", "Transfer-Encoding: chunked"}).status, 413);
  }
  EXPECT_EQ(server.served(), 0);
}

TEST(RateLimitFilter, ARefusalIsSeenEvenWhileTheBodyIsStillComing) {
  const LimitedServer server("memory:", perAddress);
  const std::string body(100000, 'x');
  EXPECT_EQ(server.post("/", body).body.size(), body.size());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(server.post("/", body).status, 429);
}

/// All that the server sends to a client that has sent `bytes` and sends no more.
std::string answerTo(const LimitedServer& server, const std::string& bytes) {
  Poco::Net::StreamSocket socket(Poco::Net::SocketAddress(Poco::URI(server.url("/")).getAuthority()));
  socket.setReceiveTimeout(Poco::Timespan(20, 0));
  socket.sendBytes(bytes.data(), static_cast<int>(bytes.size()));
  std::string all;
  char part[4096];
  for (int count = 0; (count = socket.receiveBytes(part, sizeof part)) > 0;) {
    all.append(part, static_cast<std::size_t>(count));
  }
  return all;
}

TEST(RateLimitFilter, ARefusedUploadThatDoesNotComeIsAnsweredAtOnce) {
  const LimitedServer server("memory:", perAddress);
  EXPECT_EQ(server.get("/").status, 200);
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\n";
  for (const std::string& upload :
       {head + "Content-Length: 1000\r\n\r\nbegun", head + "Content-Length: 1000000000\r\n\r\nbegun",
        head + "Transfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n"}) {
    // One answer before the half second is over proves that it is not waited for. A loaded machine may take
    // as long for the others, and nothing but time tells the two apart.
    auto fastest = std::chrono::steady_clock::duration::max();
    for (int attempt = 0; attempt < 20 && fastest >= 400ms; ++attempt) {
      const auto began = std::chrono::steady_clock::now();
      const std::string answer = answerTo(server, upload);
      fastest = std::min(fastest, std::chrono::steady_clock::now() - began);
      EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 429") << upload;
      EXPECT_NE(answer.find("Connection: Close"), std::string::npos) << answer;
    }
    EXPECT_LT(fastest, 400ms) << "not after the half second for which the server discards what comes";
  }
}

TEST(RateLimitFilter, ARefusedUploadThatTricklesInKeepsNoThreadEither) {
  const LimitedServer server("memory:", perAddress);
  EXPECT_EQ(server.get("/").status, 200);
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\n";
  for (const std::string& upload : {head + "Content-Length: 1000000\r\n\r\n",
                                    head + "Transfer-Encoding: chunked\r\n\r\n1;an extension"}) {
    Poco::Net::StreamSocket socket(Poco::Net::SocketAddress(Poco::URI(server.url("/")).getAuthority()));
    socket.sendBytes(upload.data(), static_cast<int>(upload.size()));
    ASSERT_TRUE(waitUntil([&] {
      socket.sendBytes("x", 1);
      return socket.poll({0, 5'000}, Poco::Net::Socket::SELECT_READ);
    })) << "the server waits for the rest";
    char part[12];
    ASSERT_EQ(socket.receiveBytes(part, sizeof part), 12);
    EXPECT_EQ(std::string(part, sizeof part), "HTTP/1.1 429");
  }
}

TEST(RateLimitFilter, ABodyThatIsToBeCountedMustComeInTime) {
  const LimitedServer server("memory:", perPhoneAndTotal + "lockkeeper.http.bodyTimeout = 100ms\n");
  const std::string head = "POST /sms HTTP/1.1\r\nHost: x\r\n";
  for (const std::string& begun :
       {head + "Content-Length: 1000\r\n\r\n{", head + "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"}) {
    const std::string answer = answerTo(server, begun);
    EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 408") << answer;
    EXPECT_NE(answer.find("Connection: Close"), std::string::npos) << answer;
  }
  for (const std::string& upload :
       {head + "Content-Length: 10000\r\n\r\n", head + "Transfer-Encoding: chunked\r\n\r\n1;an extension"}) {
    Poco::Net::StreamSocket trickling(Poco::Net::SocketAddress(Poco::URI(server.url("/")).getAuthority()));
    trickling.sendBytes(upload.data(), static_cast<int>(upload.size()));
    EXPECT_TRUE(waitUntil([&] {
      trickling.sendBytes("x", 1);
      return trickling.poll({0, 20'000}, Poco::Net::Socket::SELECT_READ);
    })) << "each byte comes in time, and all of them do not";
  }
  EXPECT_EQ(server.served(), 0);
}

TEST(RateLimitFilter, InADryRunABodyThatComesLateIsServed) {
  const LimitedServer server(
      "memory:", perPhoneAndTotal + "lockkeeper.http.bodyTimeout = 10ms\nlockkeeper.http.dryRun = on\n");
  const std::string head = "POST /sms HTTP/1.1\r\nHost: x\r\nConnection: close\r\n";
  using Parts = std::pair<std::string, std::string>;
  for (const auto& [begun, rest] :
       {Parts{head + "Content-Length: 10\r\n\r\nbegin", "ended"},
        Parts{head + "Transfer-Encoding: chunked\r\n\r\na\r\nbegin", "ended\r\n0\r\n\r\n"},
        Parts{head + "Transfer-Encoding: chunked\r\n\r\n5\r\nbegin\r\n0", "5\r\nended\r\n0\r\n\r\n"}}) {
    Poco::Net::StreamSocket socket(Poco::Net::SocketAddress(Poco::URI(server.url("/")).getAuthority()));
    socket.setReceiveTimeout(Poco::Timespan(20, 0));
    socket.sendBytes(begun.data(), static_cast<int>(begun.size()));
    EXPECT_FALSE(socket.poll({0, 200'000}, Poco::Net::Socket::SELECT_READ));
    socket.sendBytes(rest.data(), static_cast<int>(rest.size()));
    std::string all;
    char part[4096];
    for (int count = 0; (count = socket.receiveBytes(part, sizeof part)) > 0;) {
      all.append(part, static_cast<std::size_t>(count));
    }
    EXPECT_EQ(all.substr(0, 12), "HTTP/1.1 200") << all;
    EXPECT_TRUE(all.ends_with("beginended")) << all;
  }
}

TEST(RateLimitFilter, OtherRequestsPassUntouched) {
  const LimitedServer server("memory:", perPhoneAndTotal);
  for (int i = 0; i < 8; ++i) {
    const CurlAnswer answer = server.get("/sms");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.header("ratelimit-policy"), "");
  }
  EXPECT_EQ(server.get("/nobody").status, 501) << "as without a filter";
}

TEST(RateLimitFilter, NoOtherSpellingOfThePathGetsRoundTheLimit) {
  const LimitedServer server("memory:", perUser("all") + "lockkeeper.http.routes.all.match = GET /sms\n");
  EXPECT_EQ(server.get("/sms").status, 200);
  for (const char* target : {"/sms/", "/%73ms", "/sms?x"}) {
    EXPECT_EQ(server.get(target).status, 429) << target;
  }
  EXPECT_EQ(server.get("/sms", {"--head"}).status, 429);
  for (const char* target : {"//sms", "/x/../sms", "/./sms", "/x/%2e%2e/sms", "/sms/../../y", "/sms%2fx",
                             "/x%5c..%5csms", "/sms%00", "/sm%zz"}) {
    EXPECT_EQ(server.get(target).status, 400) << target;
  }
  EXPECT_EQ(server.served(), 1);
}

TEST(RateLimitFilter, ASpoofedXForwardedForDoesNotGiveAFreshLimit) {
  const LimitedServer server("memory:", perAddress + "lockkeeper.http.trustedProxies = 127.0.0.9\n");
  const auto from = [&](const std::string& peer, const std::string& forwarded) {
    return server.get("/", {"--interface", peer, "--header", "X-Forwarded-For: " + forwarded}).status;
  };
  EXPECT_EQ(from("127.0.0.1", "198.51.100.1"), 200);
  EXPECT_EQ(from("127.0.0.1", "198.51.100.2"), 429) << "not a proxy: the header is not looked at";
  EXPECT_EQ(from("127.0.0.1", "127.0.0.9"), 429);
  EXPECT_EQ(from("127.0.0.9", "198.51.100.1"), 200) << "the proxy tells who it is";
  EXPECT_EQ(from("127.0.0.9", "198.51.100.1"), 429);
  EXPECT_EQ(from("127.0.0.9", "198.51.100.2"), 200);
  EXPECT_EQ(from("127.0.0.9", "203.0.113.5, 198.51.100.2"), 429) << "the client has put the first one there";
}

TEST(RateLimitFilter, CountsByWhateverTheRouteSays) {
  const auto expectCounted = [](const std::string& source, const std::vector<std::string>& ann,
                                const std::vector<std::string>& bob, const std::string& target = "/") {
    const LimitedServer server("memory:", perUser(source), {.user = [](const auto& request) {
                                 return std::string(request.get("X-User", ""));
                               }});
    EXPECT_EQ(server.get(target, ann).status, 200) << source;
    EXPECT_EQ(server.get(target, ann).status, 429) << source;
    EXPECT_EQ(server.get(target, bob).status, 200) << source;
  };
  expectCounted("header X-Api-Key", {"--header", "X-Api-Key: ann"}, {"--header", "X-Api-Key: bob"});
  expectCounted("cookie session", {"--cookie", "session=ann"}, {"--cookie", "session=bob"});
  expectCounted("user", {"--header", "X-User: ann"}, {"--header", "X-User: bob"});
  expectCounted("address", {"--interface", "127.0.0.1"}, {"--interface", "127.0.0.2"});
  expectCounted("json name", {"--data", R"({"name":"ann"})"}, {"--data", R"({"name":"bob"})"});
  expectCounted("query name", {"--get", "--data", "name=ann"}, {"--get", "--data", "name=bob"});
}

TEST(RateLimitFilter, ADryRunOnlyReports) {
  std::mutex mutex;
  std::vector<std::string> reports;
  const LimitedServer server("memory:", perAddress + "lockkeeper.http.dryRun = on\n",
                             {.report = [&](const poco::RateLimitReport& report) {
                               const std::lock_guard guard(mutex);
                               reports.push_back(std::string(report.route) + " " +
                                                 std::string(report.decision.policy) +
                                                 (report.decision.allowed ? " allowed" : " refused") +
                                                 (report.dryRun ? " dry" : ""));
                               throw std::runtime_error("a broken log must not break a request");
                             }});
  for (int i = 0; i < 3; ++i) {
    const CurlAnswer answer = server.get("/");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.header("ratelimit"), "");
    EXPECT_EQ(answer.header("ratelimit-policy"), "");
  }
  const std::lock_guard guard(mutex);
  EXPECT_EQ(reports, std::vector<std::string>(2, "all perAddress refused dry"));
}

TEST(RateLimitFilter, ADryRunSaysWhomItWouldRefuse) {
  std::mutex mutex;
  std::set<std::string> whom;
  const LimitedServer server("memory:",
                             "lockkeeper.http.dryRun = on\n"
                             "lockkeeper.limits.perPhone.rate = 1/h\n"
                             "lockkeeper.limits.total.rate = 5/h\n"
                             "lockkeeper.http.routes.sms.match = POST /sms\n"
                             "lockkeeper.http.routes.sms.limits.perPhone = json phone | e164\n"
                             "lockkeeper.http.routes.sms.limits.total = all\n",
                             {.report = [&](const poco::RateLimitReport& report) {
                               const std::lock_guard guard(mutex);
                               whom.insert(report.decision.policy + ": " + std::string(report.source) +
                                           " is " + std::string(report.key));
                             }});
  for (const char* phone : {"+49 171 1", "+491711", "+491712", "nobody", "nowhere", "+491713"}) {
    server.post("/sms", R"({"phone":")" + std::string(phone) + R"("})");
  }
  const std::lock_guard guard(mutex);
  EXPECT_EQ(whom,
            (std::set<std::string>{"perPhone: json phone is +491711", "perPhone: json phone is #none"}));
}

TEST(RateLimitFilter, AReportIsPrintableWhateverAClientSends) {
  std::mutex mutex;
  std::vector<std::string> keys;
  const LimitedServer server("memory:", perUser("query name"), {.report = [&](const auto& report) {
                               const std::lock_guard guard(mutex);
                               keys.emplace_back(report.key);
                             }});
  for (const std::string& name : {std::string("a%0ab%C3%A9"), std::string(5000, 'x')}) {
    for (int i = 0; i < 2; ++i) server.get("/?name=" + name);
  }
  const std::lock_guard guard(mutex);
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys.front(), R"(a\x0ab\xc3\xa9)");
  EXPECT_TRUE(keys.back().starts_with("#")) << keys.back();
  EXPECT_EQ(keys.back().size(), 33U);
}

TEST(RateLimitFilter, TheLogOfADryRunSaysWhom) {
  const CapturedLog log("lockkeeper.http");
  Poco::Logger::get("lockkeeper.http").setLevel("debug");
  const auto logged = [&](const std::string& source, const std::vector<std::string>& arguments,
                          const std::string& more = "lockkeeper.http.dryRun = on\n") {
    const std::size_t before = log.text().size();
    const LimitedServer server("memory:", perUser(source) + more);
    for (int i = 0; i < 2; ++i) server.get("/", arguments);
    return log.text().substr(before);
  };
  const std::string would = "route all: limit perUser refuses (dry run), ";
  EXPECT_EQ(logged("address", {}), would + "address '127.0.0.1'\n");
  EXPECT_EQ(logged("json phone", {"--data", R"({"phone":"+491711"})"}), would + "json phone '+491711'\n");
  EXPECT_EQ(logged("json phone", {}), would + "json phone '#none'\n");
  EXPECT_EQ(logged("all", {}), would + "all\n");
  EXPECT_EQ(logged("header X-Api-Key", {"--header", "X-Api-Key: abcdefgh"}),
            would + "header X-Api-Key '#9c56cc51b374c3ba189210d5b6d4bf57'\n")
      << "it may be a credential";
  EXPECT_EQ(logged("address", {}, ""), "route all: limit perUser refuses\n") << "the client was told";
}

TEST(RateLimitFilter, RefusalsAreCountedByRouteAlsoThoseOfADryRun) {
  for (const std::string dry : {"false", "true"}) {
    poco::Metrics metrics;
    const LimitedServer server("memory:", perAddress + "lockkeeper.http.dryRun = " + dry + "\n",
                               {.listener = metrics.listener("memory")});
    for (int i = 0; i < 3; ++i) (void)server.get("/");
    const PrometheusText text(metrics.text());
    EXPECT_EQ(text.value("lockkeeper_http_refusals_total",
                         {{"driver", "memory"}, {"route", "all"}, {"status", "429"}, {"dry_run", dry}}),
              2);
    EXPECT_EQ(text.families().at("lockkeeper_http_refusals_total").samples.size(), 1U);
  }
}

TEST(RateLimitFilter, ADryRunRefusesNothingElseEither) {
  const LimitedServer server(
      "memory:", perPhoneAndTotal + "lockkeeper.http.maxBody = 1000\n" + "lockkeeper.http.dryRun = on\n");
  const std::string body = R"({"phone":"+491","text":")" + std::string(90000, 'x') + R"("})";
  EXPECT_EQ(server.post("/sms", body).body, body);
  EXPECT_EQ(server.post("/sms", body, {"--header", "Transfer-Encoding: chunked"}).body, body);
  EXPECT_EQ(server.get("/sm%zz").status, 200);
}

TEST(RateLimitFilter, ATargetThatIsNotValidIsRefusedWhereSomeRouteRefuses) {
  const auto statusWhere = [](const std::string& all, const std::string& route) {
    const LimitedServer server("memory:", perAddress + "lockkeeper.http.dryRun = " + all +
                                              "\nlockkeeper.http.routes.all.dryRun = " + route + "\n");
    return server.get("/sm%zz").status;
  };
  EXPECT_EQ(statusWhere("on", "off"), 400);
  EXPECT_EQ(statusWhere("off", "on"), 200);
}

}  // namespace
}  // namespace lockkeeper::test
