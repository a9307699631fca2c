// One limit, and many processes that take from it at the same time.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "database_server.h"
#include "lockkeeper/testing/rate/admissions.h"
#include "postgres_server.h"
#include "process.h"
#include "rate_taker.h"
#include "redis_server.h"
#include "temp_folder.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;
using testing::Admission;
using testing::Link;

void expectOneChainWithinTheBound(const std::string& store) {
  constexpr int processes = 4;
  const TempFolder folder;
  const auto outputOf = [&](int process) { return folder / ("taken" + std::to_string(process)); };
  {
    std::vector<Process> takers;
    for (int process = 0; process < processes; ++process) {
      takers.emplace_back(std::vector<std::string>{RATE_TAKER, store, "3000"},
                          ProcessOptions{.standardOutput = outputOf(process)});
    }
    for (Process& taker : takers) EXPECT_EQ(taker.waitFor(100s), 0);
  }
  std::vector<Link> links;
  for (int process = 0; process < processes; ++process) {
    std::ifstream in(outputOf(process));
    const std::size_t before = links.size();
    for (Link link{}; in >> link.time >> link.before >> link.after;) links.push_back(link);
    EXPECT_GT(links.size(), before) << "process " << process << " was granted nothing";
  }
  EXPECT_TRUE(testing::formOneChain(links, 200));
  std::vector<Admission> admissions;
  for (const Link& link : links) admissions.push_back({link.time, 1});
  std::ranges::sort(admissions, {}, &Admission::time);
  EXPECT_TRUE(testing::keepsEveryWindow(takersPolicy().law(), admissions));
  EXPECT_GT(admissions.size(), 100U);
}

TEST(RateProcesses, ShareOneChainOfAdmissionsOnRedis) {
  const RedisServer server;
  expectOneChainWithinTheBound(server.uri());
}

TEST(RateProcesses, ShareOneChainOfAdmissionsOnPostgres) {
  PostgresServer server;
  server.makeLocks();
  expectOneChainWithinTheBound(server.uri("postgres+version"));
}

class RateProcessesOn : public ::testing::TestWithParam<Brand> {};

TEST_P(RateProcessesOn, ShareOneChainOfAdmissions) {
  DatabaseServer server(GetParam());
  const std::string uri = server.uri(server.newDatabase());
  expectOneChainWithinTheBound("mysql+version" + uri.substr(uri.find("://")) + "?createTable=true");
}

INSTANTIATE_TEST_SUITE_P(Brands, RateProcessesOn, ::testing::ValuesIn(allBrands),
                         [](const auto& brand) { return std::string(nameOf(brand.param)); });

}  // namespace
}  // namespace lockkeeper::test
