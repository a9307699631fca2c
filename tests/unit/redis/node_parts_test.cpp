#include "cluster/node_parts.h"

#include <gtest/gtest.h>

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

struct Part {
  int posted = 0;
  int told = 0;
};

class NodePartsTest : public ::testing::Test {
 protected:
  const ScriptedServer server{[this](ScriptedServer::Peer& peer, int) { serveOneSlot(peer, server.port()); }};
  const ClusterOptions options{.seeds = {{"127.0.0.1", server.port()}}, .node = {}};
  Topology topology{options, {}};
  NodeParts<Part> nodes{topology, options.node, [](const RedisOptions&) { return std::make_shared<Part>(); },
                        [](const NodeParts<Part>::Parts& some) {
                          for (const auto& each : some) each->told = each->posted;
                        }};
  const Topology::Route route = topology.route(slot, systemClock()->now() + 10s);
  const NodeAddress next{"127.0.0.1", 1};
};

TEST_F(NodePartsTest, WhatIsPostedWhileItsNodeIsDroppedIsStillWaitedFor) {
  EXPECT_FALSE(nodes.post(route.master, [](Part&) { return true; })) << "there is none yet";
  const std::shared_ptr<Part> part = nodes.of(route.master, false);
  EXPECT_TRUE(nodes.post(route.master, [&](Part& each) {
    topology.moved(route, next);
    EXPECT_NE(nodes.of(next, false), part);
    EXPECT_EQ(nodes.all().size(), 1U) << "the master without slots was dropped";
    ++each.posted;
    return true;
  }));
  EXPECT_EQ(part->told, 1);
}

TEST_F(NodePartsTest, WhoStillHasTheRouteToAFormerMasterDoesNotBringItBack) {
  topology.moved(route, next);
  const std::shared_ptr<Part> part = nodes.of(next, false);
  EXPECT_NE(nodes.of(route.master, false), nullptr);
  EXPECT_EQ(nodes.all(), NodeParts<Part>::Parts{part});
}

}  // namespace
}  // namespace lockkeeper::redis
