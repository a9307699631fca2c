#include <Poco/Net/HTTPClientSession.h>
#include <Poco/Net/HTTPRequest.h>
#include <Poco/Net/HTTPResponse.h>
#include <Poco/StreamCopier.h>
#include <Poco/URI.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "database_server.h"
#include "etcd_cluster.h"
#include "flash_sale_table.h"
#include "free_port.h"
#include "process.h"
#include "redis_cluster.h"
#include "redis_server.h"
#include "redlock_uri.h"
#include "sentinel_group.h"
#include "temp_folder.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

void expectDemo(const std::vector<std::string>& options, const std::vector<std::string>& ways,
                int orders = 600) {
  std::vector<std::string> command{FLASH_SALE, "--stock=" + std::to_string(orders / 6),
                                   "--orders=" + std::to_string(orders), "--customers=8"};
  command.insert(command.end(), options.begin(), options.end());
  const Finished demo = runToEnd(command, {}, std::chrono::minutes{3});
  EXPECT_EQ(demo.exitCode, 0) << demo.output << demo.errors;
  std::map<std::string, int> oversold;
  for (const auto& row : readFlashSale(demo.output)) oversold[row.way] = row.oversold;
  ASSERT_EQ(oversold.size(), ways.size() + 2) << demo.output;
  EXPECT_GT(oversold.at("no lock"), 0);
  EXPECT_EQ(oversold.at("reservations"), 0);
  for (const std::string& way : ways) EXPECT_EQ(oversold.at(way), 0) << way;
  EXPECT_NE(demo.output.find("Proved:"), std::string::npos);
}

TEST(FlashSaleDemo, OversellsWithoutALockOnlyOnEmbeddedParts) {
  expectDemo({}, {"fenced row", "conditional update", "lock + optimistic"});
}

TEST(FlashSaleDemo, SellsFromSeveralProcesses) {
  const RedisServer redis;
  DatabaseServer database(Brand::mariadb);
  expectDemo({"--store=" + redis.uri(), "--database=" + database.uri(database.newDatabase()), "--processes=3",
              "--customers=100"},
             {"fenced row", "conditional update", "lock + optimistic", "optimistic"});
}

TEST(FlashSaleDemo, LeavesOutLocksThatItsProcessesDoNotShare) {
  expectDemo({"--processes=2"}, {"conditional update"});
}

TEST(FlashSaleDemo, OversellsWithoutALockOnlyOnRealServers) {
  const RedisServer redis;
  DatabaseServer database(Brand::mariadb);
  expectDemo({"--store=" + redis.uri(), "--database=" + database.uri(database.newDatabase())},
             {"fenced row", "conditional update", "lock + optimistic", "optimistic"});
}

TEST(FlashSaleDemo, TakesItsLocksFromAnotherStoreByOneLine) {
  DatabaseServer database(Brand::mariadb);
  const TempFolder folder;
  const std::string uri = database.uri(database.newDatabase());
  writeFile(folder / "settings", "lockkeeper.store = mysql+version" + uri.substr(uri.find(':')) +
                                     "?createTable=on\nlockkeeper.lock.waitFor = 2s\n");
  expectDemo({"--config=" + (folder / "settings").string()},
             {"fenced row", "conditional update", "lock + optimistic"});
}

TEST(FlashSaleDemo, TakesItsLocksFromSeveralServersByTheirUriAlone) {
  const SentinelGroup sentinels;
  const RedisCluster cluster(3, 0);
  const EtcdCluster etcd;
  for (const std::string& store : {sentinels.uri(), cluster.uri(), etcd.uri()}) {
    SCOPED_TRACE(store);
    expectDemo({"--store=" + store}, {"fenced row", "conditional update", "lock + optimistic"}, 120);
  }
}

TEST(FlashSaleDemo, TakesItsLocksFromSeveralHostsOfMysqlAndItsFencesForRedlock) {
  DatabaseServer replica(Brand::mariadb);
  DatabaseServer primary(Brand::mariadb);
  const std::string database = primary.newDatabase();
  ASSERT_EQ(replica.newDatabase(), database);
  replica.letClerkIn(database);
  primary.letClerkIn(database);
  replica.execute("SET GLOBAL read_only = 1");
  const RedisServer quorum[3];
  const std::string place = "://clerk:clerk@127.0.0.1:" + std::to_string(replica.port()) +
                            ",127.0.0.1:" + std::to_string(primary.port()) + "/" + database +
                            "?createTable=true";
  std::string fences;
  Poco::URI::encode("mysql" + place, "/?&=,@:", fences);
  for (const std::string& store : {"mysql+version" + place, "mysql+getlock" + place,
                                   redlockUri(quorum, "restartGuard=off&fenceStore=" + fences)}) {
    SCOPED_TRACE(store);
    expectDemo({"--store=" + store}, {"fenced row", "conditional update", "lock + optimistic"}, 120);
  }
}

TEST(FlashSale, SaysInOneLineWhatIsWrong) {
  const TempFolder folder;
  const auto expectError = [&](const std::string& settings, const std::string& options, int code,
                               const std::string& part) {
    writeFile(folder / "settings", settings);
    const Finished finished = runToEnd({FLASH_SALE, "--config=" + (folder / "settings").string(), options});
    EXPECT_EQ(finished.exitCode, code) << finished.errors;
    EXPECT_TRUE(finished.errors.starts_with("flash_sale: ")) << finished.errors;
    EXPECT_NE(finished.errors.find(part), std::string::npos) << finished.errors;
    EXPECT_EQ(std::ranges::count(finished.errors, '\n'), 1) << finished.errors;
  };
  const std::string nobody = "redis://127.0.0.1:" + std::to_string(freePort());
  expectError("", "--stock=1", 78, "lockkeeper.store is missing");
  expectError("lockkeeper.lock.tll = 1s\n", "--store=memory:", 78, "did you mean lockkeeper.lock.ttl?");
  expectError("flashSale.stok = 1\n", "--store=memory:", 78, "flashSale.stok");
  expectError("", "--unheard-of", 64, "unheard-of");
  expectError("", "unheard-of", 64, "unheard-of");
  expectError("", "--store=" + nobody, 69, nobody);
  const Finished lost = runToEnd({FLASH_SALE, "--config=" + (folder / "none").string()});
  EXPECT_EQ(lost.exitCode, 78);
  EXPECT_EQ(lost.errors, "flash_sale: there is no settings file '" + (folder / "none").string() + "'\n");
}

struct Answer {
  int status;
  std::string body;
  std::string retryAfter;
};

Answer askServer(std::uint16_t port, const std::string& method, const std::string& path,
                 const std::string& body = "") {
  Poco::Net::HTTPClientSession session("127.0.0.1", port);
  session.setTimeout(Poco::Timespan(30, 0));
  Poco::Net::HTTPRequest request(method, path, "HTTP/1.1");
  request.setContentLength(static_cast<std::streamsize>(body.size()));
  session.sendRequest(request) << body;
  Poco::Net::HTTPResponse response;
  std::string text;
  Poco::StreamCopier::copyToString(session.receiveResponse(response), text);
  return {response.getStatus(), text, response.get("Retry-After", "")};
}

/// `flash_sale --serve` on a Redis of its own, with two pens in stock.
class FlashSaleServer : public ::testing::Test {
 protected:
  FlashSaleServer()
      : server_({FLASH_SALE, "--serve", "--store=" + redis.uri(), "--stock=2", "--way=fencedRow",
                 "--database=sqlite:" + (folder_ / "stock.db").string(), "--port=" + std::to_string(port_)},
                {.standardOutput = folder_ / "output", .standardError = folder_ / "output"}) {
    if (!waitUntil([&] { return readFile(folder_ / "output").find("Selling") != std::string::npos; })) {
      throw std::runtime_error("flash_sale does not serve: " + readFile(folder_ / "output"));
    }
  }

  Answer ask(const std::string& method, const std::string& path, const std::string& body = "") const {
    return askServer(port_, method, path, body);
  }
  Answer order(const std::string& body) const { return ask("POST", "/orders", body); }

  RedisServer redis;

 private:
  TempFolder folder_;
  const std::uint16_t port_ = freePort();
  Process server_;
};

TEST(FlashSaleServers, ThatStartTogetherStockTheirPensOnce) {
  constexpr int servers = 4;
  const TempFolder folder;
  const auto output = [&](int server) { return folder / ("output" + std::to_string(server)); };
  const std::uint16_t port = freePort();
  std::vector<Process> processes;
  for (int server = 0; server < servers; ++server) {
    processes.emplace_back(std::vector<std::string>{FLASH_SALE, "--serve", "--store=memory:", "--stock=2",
                                                    "--database=sqlite:" + (folder / "stock.db").string(),
                                                    "--port=" + std::to_string(server == 0 ? port : 0)},
                           ProcessOptions{.standardOutput = output(server), .standardError = output(server)});
  }
  for (int server = 0; server < servers; ++server) {
    ASSERT_TRUE(waitUntil([&] { return readFile(output(server)).find("Selling") != std::string::npos; }))
        << readFile(output(server));
  }
  EXPECT_EQ(askServer(port, "GET", "/stock/pen").body, R"({"level":2,"sku":"pen"})");
}

TEST_F(FlashSaleServer, SellsEachOrderOnceAndSaysWhenNothingIsLeft) {
  EXPECT_EQ(ask("GET", "/stock/pen").body, R"({"level":2,"sku":"pen"})");
  EXPECT_EQ(order(R"({"sku":"pen","quantity":1,"orderId":"a"})").status, 201);
  EXPECT_EQ(order(R"({"sku":"pen","quantity":1,"orderId":"a"})").status, 200);
  EXPECT_EQ(order(R"({"sku":"pen","quantity":2,"orderId":"b"})").status, 409);
  EXPECT_EQ(order(R"({"sku":"pen","quantity":1,"orderId":"c"})").status, 201);
  EXPECT_EQ(order(R"({"sku":"cap","quantity":1,"orderId":"d"})").status, 404);
  EXPECT_EQ(ask("GET", "/stock/pen").body, R"({"level":0,"sku":"pen"})");
  EXPECT_EQ(ask("GET", "/stock/cap").status, 404);
  EXPECT_EQ(ask("GET", "/").status, 404);
  EXPECT_EQ(ask("GET", "/orders").status, 405);
}

TEST_F(FlashSaleServer, HoldsGoodsUntilTheyArePaidFor) {
  const auto pay = [&](const std::string& orderId, const char* accepted) {
    return ask("POST", "/payments", R"({"orderId":")" + orderId + R"(","accepted":)" + accepted + "}");
  };
  const auto reserve = [&](const std::string& orderId) {
    return ask("POST", "/reservations", R"({"sku":"pen","quantity":1,"orderId":")" + orderId + "\"}");
  };
  EXPECT_EQ(reserve("a").body, R"({"orderId":"a","result":"held"})");
  EXPECT_EQ(reserve("b").status, 201);
  EXPECT_EQ(reserve("c").status, 409);
  EXPECT_EQ(pay("a", "true").body, R"({"orderId":"a","result":"confirmed"})");
  EXPECT_EQ(pay("b", "false").body, R"({"orderId":"b","result":"cancelled"})");
  EXPECT_EQ(reserve("c").status, 201);
  // Nobody pays for it, so that it is for sale again.
  EXPECT_TRUE(waitUntil([&] { return reserve("d").status == 201; }));
  EXPECT_EQ(pay("c", "true").status, 410);
  EXPECT_EQ(pay("e", "true").status, 404);
  EXPECT_EQ(pay("d", "1").status, 400);
}

TEST_F(FlashSaleServer, NamesTheFieldThatIsWrong) {
  const std::map<std::string, std::string> bad{
      {R"({"quantity":1,"orderId":"a"})", "sku"},
      {R"({"sku":"pen","orderId":"a"})", "quantity"},
      {R"({"sku":"pen","quantity":1})", "orderId"},
      {R"({"sku":7,"quantity":1,"orderId":"a"})", "sku"},
      {R"({"sku":"pen","quantity":"1","orderId":"a"})", "quantity"},
      {R"({"sku":"pen","quantity":0,"orderId":"a"})", "quantity"},
      {R"({"sku":"pen","quantity":1.5,"orderId":"a"})", "quantity"},
      {R"({"sku":"pen","quantity":99999999999999999999999,"orderId":"a"})", "quantity"},
      {R"({"sku":"pen","quantity":1,"orderId":""})", "orderId"},
      {R"({"sku":"pen","quantity":1,"orderId":"a","price":1})", "price"},
      {"[1]", "body"},
      {"{", "body"},
      {std::string(20000, 'x'), "body"}};
  for (const auto& [body, field] : bad) {
    const Answer answer = order(body);
    EXPECT_EQ(answer.status, 400) << body.substr(0, 100);
    EXPECT_NE(answer.body.find("\"field\":\"" + field + "\""), std::string::npos) << answer.body;
  }
  EXPECT_EQ(ask("GET", "/stock/pen").body, R"({"level":2,"sku":"pen"})");
}

TEST_F(FlashSaleServer, TellsBusyFromAStoreThatIsDown) {
  // Another client, not lockkeeper's, holds the lock.
  ASSERT_EQ(redis.command({"SET", "flash_sale:stock:pen", "somebody", "NX", "PX", "60000"}), "OK");
  const Answer busy = order(R"({"sku":"pen","quantity":1,"orderId":"a"})");
  EXPECT_EQ(busy.status, 423);
  EXPECT_EQ(busy.retryAfter, "1");
  redis.kill();
  const Answer down = order(R"({"sku":"pen","quantity":1,"orderId":"a"})");
  EXPECT_EQ(down.status, 503);
  EXPECT_EQ(down.retryAfter, "1");
  redis.restart();
  EXPECT_EQ(order(R"({"sku":"pen","quantity":1,"orderId":"a"})").status, 201);
}

}  // namespace
}  // namespace lockkeeper::test
