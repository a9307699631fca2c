#include "cluster/map/slot_map.h"

#include <gtest/gtest.h>

namespace lockkeeper::redis {
namespace {

const NodeAddress asked{"10.0.0.9", 7000};

Reply number(std::int64_t value) {
  return {.kind = ReplyKind::integer, .integer = value, .text = {}, .items = {}};
}
Reply text(const std::string& value) {
  return {.kind = ReplyKind::bulk, .integer = 0, .text = value, .items = {}};
}
Reply list(std::vector<Reply> items) {
  return {.kind = ReplyKind::array, .integer = 0, .text = {}, .items = std::move(items)};
}
Reply node(const std::string& host, std::int64_t port, const std::string& id) {
  return list({text(host), number(port), text(id), list({})});
}

TEST(SlotMap, KnowsTheMasterOfEachSlotAndAllNodes) {
  const auto map =
      SlotMap::read(list({list({number(0), number(99), node("a", 1, "ida"), node("b", 2, "idb")}),
                          list({number(101), number(16383), node("c", 3, "idc")})}),
                    asked);
  ASSERT_TRUE(map);
  EXPECT_EQ(*map->master(0), (NodeAddress{"a", 1}));
  EXPECT_EQ(*map->master(99), (NodeAddress{"a", 1}));
  EXPECT_EQ(map->master(100), nullptr);
  EXPECT_EQ(*map->master(16383), (NodeAddress{"c", 3}));
  EXPECT_EQ(map->masters().size(), 2U) << "a replica is no master";
  EXPECT_EQ(map->nodes().size(), 3U);
  EXPECT_EQ(map->ids(), (std::set<std::string>{"ida", "idb", "idc"}));
}

TEST(SlotMap, ANodeWithoutAnAddressIsWhereItWasAskedOrNotThere) {
  const Reply nil{};
  const auto map = SlotMap::read(list({list({number(0), number(0), list({nil, number(5), text("id")})}),
                                       list({number(1), number(1), node("", 6, "id")}),
                                       list({number(2), number(2), node("?", 7, "id")})}),
                                 asked);
  ASSERT_TRUE(map);
  EXPECT_EQ(*map->master(0), (NodeAddress{"10.0.0.9", 5}));
  EXPECT_EQ(*map->master(1), (NodeAddress{"10.0.0.9", 6}));
  EXPECT_EQ(map->master(2), nullptr);
}

TEST(SlotMap, RefusesWhatNoClusterSays) {
  for (const Reply& range :
       {number(1), list({}), list({number(0), number(1)}), list({number(-1), number(1), node("a", 1, "i")}),
        list({number(0), number(16384), node("a", 1, "i")}), list({text("0"), number(1), node("a", 1, "i")}),
        list({number(0), number(1), number(2)})}) {
    EXPECT_FALSE(SlotMap::read(list({range}), asked));
  }
  EXPECT_FALSE(SlotMap::read(text("OK"), asked));
  ASSERT_TRUE(SlotMap::read(list({}), asked));
  EXPECT_TRUE(SlotMap::read(list({}), asked)->masters().empty());
}

TEST(SlotMap, ASlotThatMovesMakesAMasterAndMayUnmakeOne) {
  auto map = SlotMap::read(list({list({number(0), number(0), node("a", 1, "i")})}), asked);
  const SlotMap before = *map;
  map->assign(0, {"b", 2});
  EXPECT_EQ(*map->master(0), (NodeAddress{"b", 2}));
  EXPECT_EQ(map->masters(), (std::set<NodeAddress>{{"b", 2}}));
  EXPECT_FALSE(map->sameMastersAs(before));
  map->assign(0, {"a", 1});
  EXPECT_TRUE(map->sameMastersAs(before));
}

}  // namespace
}  // namespace lockkeeper::redis
