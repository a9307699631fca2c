#include "cluster/map/cluster_map.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "lockkeeper/error.h"

namespace lockkeeper::redis {

namespace {

constexpr Backoff refreshBackoff{std::chrono::milliseconds{100}, std::chrono::milliseconds{500}};

// One would do, if none were behind the others or down. The newest view counts.
constexpr std::size_t askedTogether = 3;

// How long those that are slow are waited for when others have answered.
constexpr std::chrono::milliseconds firstPatience{500};
constexpr std::chrono::milliseconds patience{100};

// While slots move one by one, each MOVED tells of its own slot, and the map is read again as seldom as that.
constexpr std::chrono::milliseconds pauseBetweenMoves{500};

// Who has so many times the time of one whose time was over need not take his failure for an answer.
constexpr int muchMore = 2;

constexpr std::size_t mostToldChanges = 3;

// They name a common node.
bool areOfOneCluster(const std::set<std::string>& one, const std::set<std::string>& other) {
  return std::any_of(one.begin(), one.end(), [&](const std::string& id) { return other.contains(id); });
}

bool servesNothing(const NodeView& view) { return view.map.masters().empty(); }

}  // namespace

ClusterMap::ClusterMap(const ClusterOptions& options, const Environment& environment,
                       std::function<void()> onNewMaster)
    : node_(options.node),
      environment_(environment),
      clock_(*environment_.clock),
      name_(options.display()),
      onNewMaster_(std::move(onNewMaster)),
      backoff_(refreshBackoff) {
  for (const ClusterOptions::Seed& seed : options.seeds) seeds_.insert({seed.host, seed.port});
}

ClusterMap::Route ClusterMap::route(std::uint16_t slot, Instant deadline) {
  Lock lock(mutex_);
  load(lock, deadline);
  const NodeAddress* master = map_->master(slot);
  if ((master == nullptr || suspects_.contains(*master)) && mayRefresh(deadline)) {
    refresh(lock, deadline);
    master = map_->master(slot);
  }
  if (master == nullptr) {
    throw StoreUnavailable(name_ + ": the slot " + std::to_string(slot) + " has no master now");
  }
  return {slot, *master};
}

std::optional<ClusterMap::Route> ClusterMap::knownRoute(std::uint16_t slot) const {
  const Lock lock(mutex_);
  const NodeAddress* const master = map_ ? map_->master(slot) : nullptr;
  if (master == nullptr) return std::nullopt;
  return Route{slot, *master};
}

std::vector<NodeAddress> ClusterMap::masters(Instant deadline) {
  Lock lock(mutex_);
  load(lock, deadline);
  // A node that has got its first slot is nobody's former master: no call would ever find it missing.
  (void)learn(lock, deadline);
  return {map_->masters().begin(), map_->masters().end()};
}

void ClusterMap::moved(const Route& route, const NodeAddress& to) {
  const Lock lock(mutex_);
  if (!map_ || to == route.master) return;
  // Other slots have probably moved, too.
  if (clock_.now() >= saturatingAdd(lastRefresh_, pauseBetweenMoves)) suspects_.insert(route.master);
  const NodeAddress* const known = map_->master(route.slot);
  if (known != nullptr && *known == to) return;
  const std::set<NodeAddress> before = map_->masters();
  map_->assign(route.slot, to);
  mastersChanged(before);
}

void ClusterMap::suspect(const Route& route) {
  const Lock lock(mutex_);
  suspects_.insert(route.master);
}

bool ClusterMap::reconsider(Route& route, Instant deadline) {
  Lock lock(mutex_);
  suspects_.insert(route.master);
  const auto isElsewhere = [&] {
    const NodeAddress* const master = map_ ? map_->master(route.slot) : nullptr;
    return master != nullptr && *master != route.master;
  };
  while (!isElsewhere()) {
    if (!learn(lock, deadline)) return false;
  }
  route.master = *map_->master(route.slot);
  return true;
}

std::uint64_t ClusterMap::version() const {
  const Lock lock(mutex_);
  return version_;
}

std::string ClusterMap::failure() const {
  const Lock lock(mutex_);
  try {
    if (failure_) std::rethrow_exception(failure_);
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

bool ClusterMap::isMaster(const NodeAddress& node) const {
  const Lock lock(mutex_);
  return map_ && map_->masters().contains(node);
}

// Returns when there is a map. All that come while the nodes are asked for the first one share its failure.
void ClusterMap::load(Lock& lock, Instant deadline) {
  while (!map_ && learn(lock, deadline)) {
  }
  if (map_) return;
  if (refreshing_ || !failure_) {
    throw StoreUnavailable(name_ + ": no node has told yet which master has which slot");
  }
  std::rethrow_exception(failure_);
}

// Asks the nodes, or waits for the one who does. False when they were asked just now, or no time is left.
bool ClusterMap::learn(Lock& lock, Instant deadline) {
  if (mayRefresh(deadline)) {
    refresh(lock, deadline);
    return true;
  }
  if (!refreshing_ || clock_.now() >= deadline) return false;
  clock_.wait(lock, refreshed_, deadline);
  return true;
}

bool ClusterMap::mayRefresh(Instant deadline) const {
  const Instant now = clock_.now();
  if (refreshing_ || now >= deadline) return false;
  return now >= nextRefresh_ || (hurry_ && deadline - now >= muchMore * *hurry_);
}

// Asks the nodes, without the mutex.
void ClusterMap::refresh(Lock& lock, Instant deadline) {
  refreshing_ = true;
  const Instant began = clock_.now();
  const bool isFirst = !map_;
  // Half of the time is left for the call itself.
  const Instant until = isFirst ? deadline : began + (deadline - began) / 2;
  std::exception_ptr failure;
  std::vector<std::string> news;
  try {
    const auto groups = whomToAsk();
    lock.unlock();
    NodeViews found = ask(groups, isFirst, until);
    lock.lock();
    NodeView newest = best(found);
    news = newFaults(found);
    if (std::string change = adopt(std::move(newest)); !change.empty()) news.push_back(std::move(change));
  } catch (...) {
    failure = std::current_exception();
    if (!lock.owns_lock()) lock.lock();
  }
  refreshing_ = false;
  failure_ = failure;
  lastRefresh_ = clock_.now();
  hurry_.reset();
  if (failure && lastRefresh_ >= until) hurry_ = deadline - began;
  nextRefresh_ = saturatingAdd(lastRefresh_, backoff_.next(*environment_.random));
  refreshed_.notify_all();
  if (news.empty()) return;
  lock.unlock();
  for (const std::string& text : news) {
    environment_.tell({.kind = EventKind::noted, .store = name_, .text = text});
  }
  lock.lock();
}

// Groups of nodes, to be asked one group after the other.
std::vector<std::vector<NodeAddress>> ClusterMap::whomToAsk() const {
  std::vector<NodeAddress> seeds(seeds_.begin(), seeds_.end());
  if (!map_) return {std::move(seeds)};
  std::vector<NodeAddress> trusted;
  std::vector<NodeAddress> others;
  for (const NodeAddress& each : map_->nodes()) {
    const bool isTrusted = map_->masters().contains(each) && !suspects_.contains(each);
    (isTrusted ? trusted : others).push_back(each);
  }
  if (!trusted.empty()) {
    // Not always the same ones.
    const auto turn = environment_.random->upTo(trusted.size() - 1);
    std::rotate(trusted.begin(), trusted.begin() + static_cast<std::ptrdiff_t>(turn), trusted.end());
  }
  const auto known = [&](const NodeAddress& seed) { return map_->nodes().contains(seed); };
  std::erase_if(seeds, known);
  trusted.insert(trusted.end(), others.begin(), others.end());
  trusted.insert(trusted.end(), seeds.begin(), seeds.end());
  std::vector<std::vector<NodeAddress>> groups;
  for (std::size_t begin = 0; begin < trusted.size(); begin += askedTogether) {
    const std::size_t end = std::min(begin + askedTogether, trusted.size());
    groups.emplace_back(trusted.begin() + static_cast<std::ptrdiff_t>(begin),
                        trusted.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return groups;
}

NodeViews ClusterMap::ask(const std::vector<std::vector<NodeAddress>>& groups, bool isFirst,
                          Instant deadline) const {
  if (isFirst) {
    return askNodes(groups.front(), firstPatience, node_, environment_, deadline);
  }
  NodeViews found;
  for (std::size_t index = 0; index < groups.size(); ++index) {
    const Instant now = clock_.now();
    const Instant until = now + (deadline - now) / static_cast<std::int64_t>(groups.size() - index);
    found = askNodes(groups[index], patience, node_, environment_, until);
    if (!std::all_of(found.views.begin(), found.views.end(), servesNothing)) break;
  }
  return found;
}

// The newest view. Throws when there is none of a cluster that serves slots, or of the right one.
NodeView ClusterMap::best(NodeViews& found) const {
  if (found.views.empty()) {
    if (!map_ && found.misconfigured.size() == seeds_.size())
      throw ConfigError(found.misconfigured.front().why);
    throw StoreUnavailable(name_ + ": no node can be reached: " + found.failure);
  }
  const NodeView first = found.views.front();
  std::erase_if(found.views, servesNothing);
  if (found.views.empty()) {
    const std::string node = name_ + ": " + first.node.text();
    if (first.knownNodes > 1) throw StoreUnavailable(node + " knows of no slot that is served");
    throw ConfigError(node + " is a cluster node alone: it has met no other node, and serves no slots");
  }
  leaveOutStrangers(found);
  const NodeView& newest =
      *std::max_element(found.views.begin(), found.views.end(),
                        [](const NodeView& a, const NodeView& b) { return a.epoch < b.epoch; });
  if (!map_) checkSeeds(found, newest);
  return newest;
}

// A wrong seed that answers alone, while the others are slow, must not decide which cluster this is.
void ClusterMap::checkSeeds(const NodeViews& found, const NodeView& newest) const {
  const auto belongs = [&](const NodeAddress& seed) {
    return newest.map.nodes().contains(seed) ||
           std::ranges::find(found.views, seed, &NodeView::node) != found.views.end();
  };
  if (2 * std::ranges::count_if(seeds_, belongs) > std::ssize(seeds_)) return;
  throw StoreUnavailable(name_ + ": most of the seeds have not answered" +
                         (found.failure.empty() ? "" : ": " + found.failure));
}

// Nodes of another cluster than the one that was met before or, at the first contact, than most of the seeds.
void ClusterMap::leaveOutStrangers(NodeViews& found) const {
  const auto members = [&](const std::set<std::string>& ids) {
    return std::ranges::count_if(found.views,
                                 [&](const NodeView& view) { return areOfOneCluster(view.map.ids(), ids); });
  };
  std::set<std::string> ids = map_ ? map_->ids() : found.views.front().map.ids();
  for (const NodeView& view : found.views) {
    if (!map_ && members(view.map.ids()) > members(ids)) ids = view.map.ids();
  }
  const auto isStranger = [&](const NodeView& view) { return !areOfOneCluster(view.map.ids(), ids); };
  const auto stranger = std::ranges::find_if(found.views, isStranger);
  if (stranger == found.views.end()) return;
  const std::string fault = name_ + ": " + stranger->node.text() + " belongs to another cluster than ";
  if (map_ && members(ids) == 0) throw ConfigError(fault + "the nodes that were met before");
  if (!map_ && 2 * members(ids) <= std::ssize(found.views)) {
    throw ConfigError(fault + "the other nodes: all must be of one cluster");
  }
  for (const NodeView& view : found.views) {
    if (isStranger(view)) found.misconfigured.push_back({view.node, "it belongs to another cluster"});
  }
  std::erase_if(found.views, isStranger);
}

// In words for people, each once.
std::vector<std::string> ClusterMap::newFaults(const NodeViews& found) {
  std::vector<std::string> texts;
  for (const auto& [node, why] : found.misconfigured) {
    if (!faultyNodes_.insert(node).second) continue;
    texts.push_back("the node " + node.text() + " is not asked, since it is set up wrongly: " + why);
  }
  return texts;
}

// Returns what has changed, in words for people.
std::string ClusterMap::adopt(NodeView view) {
  suspects_.clear();
  // A node that is cut off, or has not heard of it yet, does not take back what others have told.
  if (map_ && view.epoch < epoch_) return {};
  epoch_ = view.epoch;
  const bool same = map_ && map_->sameMastersAs(view.map);
  std::string change = map_ && !same ? changeTo(view.map) : std::string();
  const std::set<NodeAddress> before = map_ ? map_->masters() : view.map.masters();
  map_ = std::move(view.map);
  mastersChanged(before);
  if (same) return {};
  backoff_ = refreshBackoff;
  return change;
}

void ClusterMap::mastersChanged(const std::set<NodeAddress>& before) {
  const std::set<NodeAddress>& now = map_->masters();
  if (now == before) return;
  ++version_;
  const bool anyNew = !std::includes(before.begin(), before.end(), now.begin(), now.end());
  if (anyNew && onNewMaster_) onNewMaster_();
}

std::string ClusterMap::changeTo(const SlotMap& map) const {
  std::set<std::string> changes;
  for (std::size_t slot = 0; slot < SlotMap::slots && changes.size() <= mostToldChanges; ++slot) {
    const NodeAddress* const before = map_->master(static_cast<std::uint16_t>(slot));
    const NodeAddress* const now = map.master(static_cast<std::uint16_t>(slot));
    if (before == nullptr || now == nullptr || *before == *now) continue;
    changes.insert(now->text() + " serves slots that " + before->text() + " served");
  }
  std::string text;
  std::size_t told = 0;
  for (const std::string& each : changes) {
    if (told++ == mostToldChanges) return text + "; and more";
    text += (text.empty() ? "" : "; ") + each;
  }
  return text;
}

}  // namespace lockkeeper::redis
