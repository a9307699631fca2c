#include "frozen_server.h"

#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class FrozenServerTest : public RedisFaultTest {
 protected:
  const FreezableStore store{
      .open = [this] { return openRedis(server.port(), "ioTimeout=300ms&connectTimeout=300ms"); },
      .timeouts = 300ms,
      .direct = direct,
      .isFree = [this](const std::string& key) { return isFree(key); },
      .freeze = [this] { server.pause(); },
      .thaw = [this] { server.resume(); }};
};

class FrozenServer : public FrozenServerTest, public ::testing::WithParamInterface<Operation> {};

TEST_P(FrozenServer, EveryCallReturnsByItsDeadlineAndLeavesNothingBehind) { freezeDuring(GetParam(), store); }

INSTANTIATE_TEST_SUITE_P(Operations, FrozenServer, ::testing::ValuesIn(operations()), operationName);

using FrozenServerWithThreads = FrozenServerTest;

TEST_F(FrozenServerWithThreads, AllThreadsReturnByTheirDeadlines) { freezeUnderLoad(store); }

using FrozenServerUnderManager = FrozenServerTest;

TEST_F(FrozenServerUnderManager, AClaimThatWasGivenUpDoesNotKeepTheKey) { freezeBeforeAClaim(store); }

TEST_F(FrozenServerUnderManager, AHolderIsToldBeforeItsLeaseEnds) { freezeUnderAHolder(store); }

}  // namespace
}  // namespace lockkeeper::test
