// Claims that reach the nodes when their caller has given them up.

#include "late_claim.h"

#include <array>

#include "lockkeeper/testing/fake_fences.h"
#include "redlock_fixture.h"

namespace lockkeeper::test {
namespace {

struct ProxiedNodes {
  static constexpr std::size_t count = 3;

  std::array<RedisServer, count> servers;
  std::vector<std::unique_ptr<FaultProxy>> proxies;
};

LateStore lateNodes(std::shared_ptr<FenceSource> fences = nullptr) {
  const auto nodes = std::make_shared<ProxiedNodes>();
  LateStore store{.servers = nodes};
  std::vector<std::uint16_t> ports, proxyPorts;
  for (const RedisServer& each : nodes->servers) {
    FaultProxy& proxy = *nodes->proxies.emplace_back(std::make_unique<FaultProxy>(each.port()));
    store.proxies.push_back(&proxy);
    ports.push_back(each.port());
    proxyPorts.push_back(proxy.port());
  }
  StoreRegistry registry;
  redis::use(registry);
  registry.addFences("fake", [&](const StoreUri&, const Environment&) { return fences; });
  const std::string query = std::string(withoutGuard) + (fences ? "&fenceStore=fake:" : "");
  store.proxied = registry.open(redlockUri(proxyPorts, query));
  store.direct = registry.open(redlockUri(ports, query));
  for (const auto& driver : {store.proxied, store.direct}) {
    EXPECT_TRUE(waitUntil([&] {
      const Claimant first{};
      if (!granted(driver->acquire(first.request(soon(), true)))) return false;
      std::size_t agree = 0;
      for (const auto& view : capability<Quorate>(*driver)->views(first.key, soon()))
        agree += view.holder.has_value();
      (void)driver->release(first.claim(), soon());
      return agree == ProxiedNodes::count;
    }));
  }
  return store;
}

constexpr LateStoreCase lateQuorums[] = {
    {"Redlock", [] { return lateNodes(); }, false, false},
    {"RedlockFenced", [] { return lateNodes(std::make_shared<testing::FakeFences>()); }, true, false},
};
INSTANTIATE_TEST_SUITE_P(Stores, LateClaim, ::testing::ValuesIn(lateQuorums), lateStoreName);

}  // namespace
}  // namespace lockkeeper::test
