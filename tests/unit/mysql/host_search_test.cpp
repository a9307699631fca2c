#include "hosts/host_search.h"

#include <gmock/gmock.h>

#include "lockkeeper/error.h"
#include "no_threads.h"

namespace lockkeeper::mysql {
namespace {

using namespace std::chrono_literals;
using test::NoThreads;
using ::testing::HasSubstr;

TEST(HostSearch, WithoutAThreadForAHostSaysSoEachTimeAndGoesOnWhenThereIsOne) {
  const auto options = ServerOptions::fromUri(StoreUri::parse("mysql+version://shop:s3cr3t@a,b/locks"));
  const auto clock = systemClock();
  HostSearch search(options,
                    {.connect = [](const ServerAddress& address, Instant) -> std::unique_ptr<ServerSession> {
                       throw StoreUnavailable("asked " + address.host);
                     },
                     .prepare = [](ServerSession&, const ServerAddress&, Instant, HostReport&) {}},
                    clock);
  const auto refusal = [&]() -> std::string {
    try {
      (void)search.open(clock->now() + 10s);
      return "opened";
    } catch (const StoreUnavailable& error) {
      return error.what();
    }
  };
  {
    const NoThreads none;
    for (int i = 0; i < 2; ++i) EXPECT_THAT(refusal(), HasSubstr("no thread to ask it with"));
  }
  // What a search has found out holds for a moment.
  std::string said = refusal();
  for (const Instant end = clock->now() + 10s; clock->now() < end && said.find("asked b") == said.npos;) {
    said = refusal();
  }
  EXPECT_THAT(said, HasSubstr("asked b"));
}

}  // namespace
}  // namespace lockkeeper::mysql
