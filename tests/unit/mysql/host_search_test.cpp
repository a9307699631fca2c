#include "hosts/host_search.h"

#include <gmock/gmock.h>
#include <pthread.h>

#include "lockkeeper/error.h"

namespace lockkeeper::mysql {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// No thread can be started while it lives: none has room for its stack.
class NoThreads {
 public:
  NoThreads() {
    EXPECT_EQ(::pthread_getattr_default_np(&usual_), 0);
    pthread_attr_t huge;
    EXPECT_EQ(::pthread_attr_init(&huge), 0);
    EXPECT_EQ(::pthread_attr_setstacksize(&huge, std::size_t{1} << 47U), 0);
    EXPECT_EQ(::pthread_setattr_default_np(&huge), 0);
    ::pthread_attr_destroy(&huge);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;
  ~NoThreads() {
    EXPECT_EQ(::pthread_setattr_default_np(&usual_), 0);
    ::pthread_attr_destroy(&usual_);
  }

 private:
  pthread_attr_t usual_{};
};

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
