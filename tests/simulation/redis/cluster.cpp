#include "simulation/redis/cluster.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

namespace lockkeeper::simulation {
namespace {

constexpr std::uint16_t slotCount = 16384;

bool isOfSlot(const std::string& key, std::uint16_t slot) { return slotOf(key) == slot; }

bool isOfChannel(const std::string& command) {
  return command == "SPUBLISH" || command == "SSUBSCRIBE" || command == "SUNSUBSCRIBE";
}

// Those of the commands that lockkeeper sends.
std::span<const std::string> keysOf(const Words& words) {
  const std::string& name = words[0];
  if (name == "EVAL" || name == "EVALSHA")
    return std::span(words).subspan(3, static_cast<std::size_t>(redisInteger(words.at(2)).value_or(0)));
  const bool hasKey = isOfChannel(name) || (Keyspace::knows(name) && name != "SCAN" && name != "TIME");
  return std::span(words).subspan(1, hasKey ? 1 : 0);
}

RedisReply nodeOf(const RedisNode& node) {
  return RedisReply::array(
      {RedisReply::bulk(node.address()), RedisReply::of(RedisNode::port), RedisReply::bulk(node.name())});
}

RedisReply redirect(const char* how, std::uint16_t slot, const RedisNode& to) {
  return RedisReply::error(std::string(how) + " " + std::to_string(slot) + " " + to.address() + ":" +
                           std::to_string(RedisNode::port));
}

}  // namespace

// CRC-16 (XMODEM) of the hash tag, or of the whole key.
std::uint16_t slotOf(std::string_view key) {
  const std::size_t begin = key.find('{');
  const std::size_t end = begin == std::string_view::npos ? begin : key.find('}', begin);
  if (end != std::string_view::npos && end > begin + 1) key = key.substr(begin + 1, end - begin - 1);
  unsigned crc = 0;
  for (const char each : key) {
    crc ^= static_cast<unsigned>(static_cast<unsigned char>(each)) << 8U;
    for (int bit = 0; bit < 8; ++bit)
      crc = ((crc & 0x8000U) != 0 ? crc << 1U ^ 0x1021U : crc << 1U) & 0xFFFFU;
  }
  return static_cast<std::uint16_t>(crc % slotCount);
}

void SlotTable::assign(std::uint16_t slot, std::size_t shard) {
  if (slot + 1 < slotCount) starts.emplace(slot + 1, shardOf(static_cast<std::uint16_t>(slot + 1)));
  starts[slot] = shard;
}

std::optional<RedisReply> ClusterView::refusal(const Words& words, bool asking) {
  const std::span<const std::string> keys = keysOf(words);
  if (keys.empty()) return std::nullopt;
  const std::uint16_t slot = slotOf(keys[0]);
  if (!std::all_of(keys.begin(), keys.end(), [&](const std::string& key) { return isOfSlot(key, slot); }))
    return RedisReply::error("CROSSSLOT Keys in request don't hash to the same slot");
  const auto to = migrating.find(slot);
  const bool accepts = asking && importing.contains(slot);
  const bool isHere = serves(slot);
  if (!isHere && !accepts) return redirect("MOVED", slot, *table_->shards[table_->shardOf(slot)].master);
  if ((isHere && to == migrating.end()) || isOfChannel(words[0])) return std::nullopt;
  const auto missing = static_cast<std::size_t>(std::count_if(keys.begin(), keys.end(), [&](const auto& key) {
    return self_.keys().execute({"EXISTS", key})->number == 0;
  }));
  if (missing == 0 || (!isHere && keys.size() == 1)) return std::nullopt;
  if (isHere && missing == keys.size()) return redirect("ASK", slot, *to->second);
  return RedisReply::error("TRYAGAIN Multiple keys request during rehashing of slot");
}

RedisReply ClusterView::answer(const Words& words) const {
  if (words.at(1) == "INFO")
    return RedisReply::bulk(
        "cluster_state:ok\r\ncluster_known_nodes:" + std::to_string(2 * table_->shards.size()) +
        "\r\ncluster_current_epoch:" + std::to_string(table_->epoch) + "\r\n");
  RedisReply slots = RedisReply::array();
  for (auto each = table_->starts.begin(); each != table_->starts.end(); ++each) {
    const auto next = std::next(each);
    const std::int64_t last = (next == table_->starts.end() ? slotCount : next->first) - 1;
    const SlotTable::Shard& shard = table_->shards[each->second];
    slots.items.push_back(RedisReply::array(
        {RedisReply::of(each->first), RedisReply::of(last), nodeOf(*shard.master), nodeOf(*shard.replica)}));
  }
  return slots;
}

void ClusterView::adopt(std::shared_ptr<const SlotTable> table) {
  if (table->epoch <= table_->epoch) return;
  const auto former = std::exchange(table_, std::move(table));
  std::erase_if(importing, [&](const auto& each) { return serves(each.first); });
  std::erase_if(migrating, [&](const auto& each) { return !serves(each.first); });
  self_.dropChannels([&](const std::string& channel) {
    const std::uint16_t slot = slotOf(channel);
    return former->shards[former->shardOf(slot)].master == &self_ && !serves(slot);
  });
}

Cluster::Cluster(Scheduler& scheduler, const std::vector<std::unique_ptr<RedisNode>>& nodes,
                 std::uint64_t seed)
    : scheduler_(scheduler), nodes_(nodes), chance_(seed, 8) {
  SlotTable table;
  const std::size_t count = nodes.size() / 2;
  for (std::size_t i = 0; i < count; ++i) {
    table.shards.push_back({nodes[i].get(), nodes[i + count].get()});
    table.starts.emplace(i * slotCount / count, i);
    nodes[i + count]->replication().follow(&nodes[i]->replication());
  }
  table_ = std::make_shared<const SlotTable>(std::move(table));
  for (const auto& each : nodes) each->join(std::make_shared<ClusterView>(*each, table_));
}

// Whom `first` tells of it hears it later, but `unreached`.
void Cluster::change(const std::function<void(SlotTable& table)>& how, RedisNode& first,
                     const RedisNode* unreached) {
  SlotTable changed = *table_;
  ++changed.epoch;
  how(changed);
  table_ = std::make_shared<const SlotTable>(std::move(changed));
  first.cluster()->adopt(table_);
  for (const auto& each : nodes_) {
    const Time at = scheduler_.now() + static_cast<Time>(chance_.upTo(500 * millisecond));
    if (each.get() == unreached) continue;
    scheduler_.at(at, [&node = *each, table = table_] { node.cluster()->adopt(table); });
  }
}

void Cluster::move(std::uint16_t slot, std::size_t to, Time length) {
  RedisNode& source = *table_->shards[table_->shardOf(slot)].master;
  RedisNode& target = *table_->shards[to].master;
  target.cluster()->importing[slot] = &source;
  source.cluster()->migrating[slot] = &target;
  constexpr Time steps = 8;
  for (Time step = 1; step < steps; ++step) {
    const Time at = scheduler_.now() + length * step / steps;
    scheduler_.at(at, [this, slot, &source, &target] { moveKey(slot, source, target); });
  }
  scheduler_.at(scheduler_.now() + length, [this, slot, to, &source, &target] {
    for (std::size_t i = 0; i < 8; ++i) moveKey(slot, source, target);
    change([&](SlotTable& table) { table.assign(slot, to); }, target, nullptr);
  });
}

void Cluster::moveKey(std::uint16_t slot, RedisNode& from, RedisNode& to) {
  std::vector<std::string> names = from.keys().names();
  std::erase_if(names, [&](const std::string& name) { return !isOfSlot(name, slot); });
  if (names.empty()) return;
  from.keys().move(names[chance_.upTo(names.size() - 1)], to.keys());
  to.replication().wrote();
  from.replication().wrote();
}

void Cluster::promote(std::size_t shard) {
  RedisNode& former = *table_->shards[shard].master;
  RedisNode& master = *table_->shards[shard].replica;
  master.replication().follow(nullptr);
  change([&](SlotTable& table) { std::swap(table.shards[shard].master, table.shards[shard].replica); },
         master, &former);
}

void Cluster::demote(std::size_t shard) {
  RedisNode& former = *table_->shards[shard].replica;
  former.replication().follow(&table_->shards[shard].master->replication());
  former.cluster()->adopt(table_);
}

}  // namespace lockkeeper::simulation
