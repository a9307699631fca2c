#include "cluster/topology.h"

#include <gtest/gtest.h>

#include <stop_token>
#include <thread>

#include "wire/scripted_server.h"

namespace lockkeeper::redis {
namespace {

using namespace std::chrono_literals;

constexpr std::uint16_t slot = 5;

/// A node of a cluster in which it has one slot, and nobody has the others.
void serveOneSlot(ScriptedServer::Peer& peer, std::uint16_t port) {
  while (true) {
    const std::vector<std::string> words = peer.command();
    if (words[0] == "INFO") {
      peer.say(bulk(goodInfo + "cluster_enabled:1\r\n"));
    } else if (words[0] == "CLUSTER" && words[1] == "INFO") {
      peer.say(bulk("cluster_current_epoch:1\r\ncluster_known_nodes:2\r\n"));
    } else if (words[0] == "CLUSTER") {
      peer.say("*1\r\n*3\r\n:5\r\n:5\r\n*3\r\n" + bulk("127.0.0.1") + ":" + std::to_string(port) + "\r\n" +
               bulk("id"));
    } else {
      peer.say("+OK\r\n");
    }
  }
}

struct FakeNode {
  bool hasPosted = false;
};

class TopologyTest : public ::testing::Test {
 protected:
  const ScriptedServer server{[this](ScriptedServer::Peer& peer, int) { serveOneSlot(peer, server.port()); }};
  const ClusterOptions options{.seeds = {{"127.0.0.1", server.port()}}, .node = {}};
  const std::shared_ptr<ClusterMap> map = std::make_shared<ClusterMap>(options, Environment{});
  Topology<FakeNode> nodes{map, options.node,
                           [](const RedisOptions&) { return std::make_shared<FakeNode>(); },
                           [](FakeNode& node) { return node.hasPosted; }};
  const ClusterMap::Route route = map->route(slot, systemClock()->now() + 10s);
  const std::string key = tagInSlot(slot);
  const NodeAddress next{"127.0.0.1", 1};
};

TEST_F(TopologyTest, WhatIsPostedWhileItsNodeIsDroppedIsStillWaitedFor) {
  EXPECT_FALSE(nodes.post(key, [](FakeNode&) { return true; })) << "there is none yet";
  const std::weak_ptr<FakeNode> node = nodes.of(route.master, false);
  EXPECT_TRUE(nodes.post(key, [&](FakeNode& each) {
    map->moved(route, next);
    EXPECT_NE(nodes.of(next, false), node.lock());
    EXPECT_EQ(nodes.used().size(), 1U) << "the master without slots was dropped";
    return each.hasPosted = true;
  }));
  EXPECT_EQ(nodes.used().size(), 1U);
  EXPECT_EQ(nodes.perhapsPosted().size(), 2U);
  ASSERT_EQ(nodes.perhapsPosted().front(), node.lock());
  node.lock()->hasPosted = false;
  EXPECT_EQ(nodes.perhapsPosted(), nodes.used());
  EXPECT_TRUE(node.expired());
}

TEST_F(TopologyTest, WhatIsPostedToANodeBeforeItIsDroppedIsStillWaitedFor) {
  const std::weak_ptr<FakeNode> node = nodes.of(route.master, false);
  EXPECT_TRUE(nodes.post(key, [](FakeNode& each) { return each.hasPosted = true; }));
  map->moved(route, next);
  (void)nodes.of(next, false);
  ASSERT_EQ(nodes.perhapsPosted().size(), 2U);
  EXPECT_EQ(nodes.perhapsPosted().front(), node.lock());
}

TEST_F(TopologyTest, ANodeThatIsDroppedEndsWhenNothingIsPostedToIt) {
  const std::weak_ptr<FakeNode> node = nodes.of(route.master, false);
  map->moved(route, next);
  (void)nodes.of(next, false);
  EXPECT_TRUE(node.expired());
}

TEST_F(TopologyTest, WhoStillHasTheRouteToAFormerMasterDoesNotBringItBack) {
  map->moved(route, next);
  const std::shared_ptr<FakeNode> node = nodes.of(next, false);
  EXPECT_NE(nodes.of(route.master, false), nullptr);
  EXPECT_EQ(nodes.used(), Topology<FakeNode>::Nodes{node});
}

TEST_F(TopologyTest, ACallThatWaitedGoesOnWhereTheKeyIsThen) {
  const Instant began = systemClock()->now();
  int calls = 0;
  const auto wait = [&](FakeNode&, Instant deadline) {
    if (++calls == 2) return deadline;
    const Instant called = systemClock()->now();
    while (systemClock()->now() - called <= longCall) std::this_thread::yield();
    throw Redirected("moved", {.kind = Redirect::Kind::moved, .to = next});
  };
  const Instant deadline = nodes.wait(key, began + 1ms, began + 10s, {}, *systemClock(), wait);
  EXPECT_EQ(calls, 2);
  EXPECT_GT(deadline, began + options.node.ioTimeout) << "it has a time of its own there";
}

TEST_F(TopologyTest, ACallWhoseWaitIsOverIsNotMadeAgain) {
  std::stop_source stop;
  const auto wait = [&](FakeNode&, Instant) -> int {
    stop.request_stop();
    throw Redirected("moved", {.kind = Redirect::Kind::moved, .to = next});
  };
  const Instant until = systemClock()->now() + 10s;
  EXPECT_THROW(nodes.wait(key, until, until, stop.get_token(), *systemClock(), wait), Redirected);
}

TEST(TopologyOfOneServer, MakesOneNodeAndCallsIt) {
  int made = 0;
  Topology<FakeNode> one(nullptr, {}, [&](const RedisOptions&) {
    ++made;
    return std::make_shared<FakeNode>();
  });
  for (const char* const key : {"a", "b"}) {
    EXPECT_EQ(one.at(key, Instant{}, [&](FakeNode& node) { return &node; }), one.only());
  }
  EXPECT_TRUE(one.post("c", [&](FakeNode& node) { return &node == one.only(); }));
  EXPECT_EQ(one.used().size(), 1U);
  EXPECT_EQ(made, 1);
}

}  // namespace
}  // namespace lockkeeper::redis
