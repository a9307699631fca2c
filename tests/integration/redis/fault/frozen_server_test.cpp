#include "frozen_server.h"

#include <tuple>

#include "redis_fixture.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class FrozenServerTest : public RedisFaultTest {
 protected:
  FreezableStore storeOf(const std::string& scheme) {
    return {.open = [this, scheme] { return openRedis(server.port(), shortTimeouts, scheme); },
            .timeouts = 300ms,
            .direct = openRedis(server.port(), "", scheme),
            .isFree = [this](const std::string& key) { return isFree(key); },
            .freeze = [this] { server.pause(); },
            .thaw = [this] { server.resume(); }};
  }
};

using OperationAndScheme = std::tuple<Operation, const char*>;

class FrozenServer : public FrozenServerTest, public ::testing::WithParamInterface<OperationAndScheme> {};

TEST_P(FrozenServer, EveryCallReturnsByItsDeadlineAndLeavesNothingBehind) {
  const auto& [operation, scheme] = GetParam();
  freezeDuring(operation, storeOf(scheme));
}

INSTANTIATE_TEST_SUITE_P(Operations, FrozenServer,
                         ::testing::Combine(::testing::ValuesIn(operations()),
                                            ::testing::Values("redis", "redis+legacy")),
                         [](const ::testing::TestParamInfo<OperationAndScheme>& what) {
                           return std::get<0>(what.param).name + nameOf(std::get<1>(what.param));
                         });

using FrozenServerWithThreads = FrozenServerTest;

TEST_F(FrozenServerWithThreads, AllThreadsReturnByTheirDeadlines) { freezeUnderLoad(storeOf("redis")); }

class FrozenServerUnderManager : public FrozenServerTest,
                                 public ::testing::WithParamInterface<const char*> {};

TEST_P(FrozenServerUnderManager, AClaimThatWasGivenUpDoesNotKeepTheKey) {
  freezeBeforeAClaim(storeOf(GetParam()));
}

TEST_P(FrozenServerUnderManager, AHolderIsToldBeforeItsLeaseEnds) { freezeUnderAHolder(storeOf(GetParam())); }

INSTANTIATE_TEST_SUITE_P(Schemes, FrozenServerUnderManager, ::testing::Values("redis", "redis+legacy"),
                         schemeName);

}  // namespace
}  // namespace lockkeeper::test
