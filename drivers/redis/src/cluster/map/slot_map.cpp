#include "cluster/map/slot_map.h"

#include <algorithm>

namespace lockkeeper::redis {

namespace {

constexpr std::size_t mostMasters = 1000;  // what the cluster's own specification recommends at most

/// "[host, port, id, …]". The host is nil or empty where it is that of the node which was asked, and "?"
/// where it is not known.
std::optional<NodeAddress> addressOf(const Reply& node, const NodeAddress& asked) {
  if (node.items.size() < 2 || node.items[1].kind != ReplyKind::integer) return std::nullopt;
  const std::int64_t port = node.items[1].integer;
  const std::string& host = node.items[0].text;
  if (port < 1 || port > 0xFFFF || host == "?") return std::nullopt;
  return NodeAddress{host.empty() ? asked.host : host, static_cast<std::uint16_t>(port)};
}

bool isSlot(const Reply& reply) {
  return reply.kind == ReplyKind::integer && reply.integer >= 0 &&
         reply.integer < static_cast<std::int64_t>(SlotMap::slots);
}

}  // namespace

std::optional<SlotMap> SlotMap::read(const Reply& reply, const NodeAddress& asked) {
  if (reply.kind != ReplyKind::array) return std::nullopt;
  SlotMap map;
  for (const Reply& range : reply.items) {
    if (!map.readRange(range, asked)) return std::nullopt;
  }
  map.findMasters();
  return map;
}

// "[first slot, last slot, master, replica, …]".
bool SlotMap::readRange(const Reply& range, const NodeAddress& asked) {
  if (range.items.size() < 3 || !isSlot(range.items[0]) || !isSlot(range.items[1])) return false;
  for (std::size_t index = 2; index < range.items.size(); ++index) {
    const Reply& node = range.items[index];
    if (node.kind != ReplyKind::array) return false;
    if (node.items.size() > 2) ids_.insert(node.items[2].text);
    const auto address = addressOf(node, asked);
    if (!address) continue;
    nodes_.insert(*address);
    if (index > 2) continue;
    const std::uint16_t place = placeOf(*address);
    for (std::int64_t slot = range.items[0].integer; slot <= range.items[1].integer; ++slot) {
      bySlot_[static_cast<std::size_t>(slot)] = place;
    }
  }
  return places_.size() <= mostMasters;
}

const NodeAddress* SlotMap::master(std::uint16_t slot) const {
  const std::uint16_t place = bySlot_[slot];
  return place == nobody ? nullptr : &places_[place];
}

void SlotMap::assign(std::uint16_t slot, const NodeAddress& master) {
  bySlot_[slot] = placeOf(master);
  nodes_.insert(master);
  findMasters();
}

bool SlotMap::sameMastersAs(const SlotMap& other) const {
  for (std::size_t slot = 0; slot < slots; ++slot) {
    const NodeAddress* const own = master(static_cast<std::uint16_t>(slot));
    const NodeAddress* const others = other.master(static_cast<std::uint16_t>(slot));
    if ((own == nullptr) != (others == nullptr) || (own != nullptr && *own != *others)) return false;
  }
  return true;
}

std::uint16_t SlotMap::placeOf(const NodeAddress& master) {
  const auto found = std::find(places_.begin(), places_.end(), master);
  const auto place = static_cast<std::uint16_t>(found - places_.begin());
  if (found == places_.end()) places_.push_back(master);
  return place;
}

void SlotMap::findMasters() {
  masters_.clear();
  std::vector<bool> has(places_.size());
  for (const std::uint16_t place : bySlot_) {
    if (place == nobody || has[place]) continue;
    has[place] = true;
    masters_.insert(places_[place]);
  }
}

}  // namespace lockkeeper::redis
