#include "redis_cluster.h"

#include <set>
#include <sstream>
#include <stdexcept>

#include "wait_until.h"

namespace lockkeeper::test {

namespace {

constexpr std::chrono::seconds patience{30};

void expect(bool done, const char* what) {
  if (!done) throw std::runtime_error(std::string("the Redis Cluster does not ") + what);
}

std::string ok(const RedisServer& node, const std::vector<std::string>& words) {
  std::string reply = node.command(words);
  if (reply.starts_with("(error)")) throw std::runtime_error(words[0] + " " + words[1] + ": " + reply);
  return reply;
}

RedisOptions ofCluster(RedisOptions options) {
  options.cluster = true;
  options.arguments.insert(  // Those of the caller come last, and count.
      options.arguments.begin(),
      {"--cluster-node-timeout", "1000", "--repl-diskless-sync-delay", "0", "--cluster-require-full-coverage",
       "no", "--cluster-allow-replica-migration", "no"});
  return options;
}

}  // namespace

RedisCluster::RedisCluster(std::size_t masters, std::size_t replicasOfEach, RedisOptions node)
    : options_(ofCluster(std::move(node))), masters_(masters) {
  const std::size_t count = masters * (1 + replicasOfEach);
  for (std::size_t index = 0; index < count; ++index) {
    nodes_.push_back(std::make_unique<RedisServer>(options_));
    runs_.push_back(true);
    if (index < masters) {
      const std::size_t first = slots * index / masters;
      const std::size_t last = slots * (index + 1) / masters - 1;
      std::vector<std::string> words{"CLUSTER", "ADDSLOTS"};
      for (std::size_t slot = first; slot <= last; ++slot) words.push_back(std::to_string(slot));
      ok(*nodes_[index], words);
    }
    ok(*nodes_[index], {"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(index + 1)});
    if (index > 0) meet(index);
  }
  // Nodes hear of each other first, and of each other's slots later, with the next PING.
  const auto knowsAll = [&](const RedisServer& each) {
    const std::string info = ok(each, {"CLUSTER", "INFO"});
    const auto says = [&](const char* name, std::size_t number) {
      return info.find(name + std::to_string(number) + "\r") != std::string::npos;
    };
    return says("cluster_known_nodes:", count) && says("cluster_slots_assigned:", slots);
  };
  for (const auto& each : nodes_) expect(waitUntil([&] { return knowsAll(*each); }, patience), "meet");
  for (std::size_t index = masters; index < count; ++index) {
    ok(*nodes_[index], {"CLUSTER", "REPLICATE", idOf((index - masters) % masters)});
  }
  for (std::size_t index = masters; index < count; ++index) {
    const auto isLinked = [&] {
      return nodes_[index]->command({"INFO", "replication"}).find("master_link_status:up") !=
             std::string::npos;
    };
    expect(waitUntil(isLinked, patience), "replicate");
  }
  awaitWell();
}

std::string RedisCluster::uri(const std::string& query, std::size_t seeds) const {
  std::string text = "redis+cluster://";
  for (std::size_t index = 0; index < std::min(seeds, nodes_.size()); ++index) {
    const std::uint16_t port = options_.tls ? nodes_[index]->tlsPort() : nodes_[index]->port();
    text += (index > 0 ? ",127.0.0.1:" : "127.0.0.1:") + std::to_string(port);
  }
  return query.empty() ? text : text + "?" + query;
}

// As the specification has it, and apart from the driver's own.
std::uint16_t RedisCluster::slotOf(const std::string& key) {
  std::string hashed = key;
  const std::size_t open = key.find('{');
  const std::size_t close = open == std::string::npos ? open : key.find('}', open);
  if (close != std::string::npos && close > open + 1) hashed = key.substr(open + 1, close - open - 1);
  unsigned crc = 0;
  for (const char byte : hashed) {
    crc ^= static_cast<unsigned>(static_cast<unsigned char>(byte)) << 8;
    for (int bit = 0; bit < 8; ++bit)
      crc = ((crc & 0x8000U) != 0 ? (crc << 1) ^ 0x1021U : crc << 1) & 0xFFFFU;
  }
  return static_cast<std::uint16_t>(crc % slots);
}

std::string RedisCluster::keyAt(std::size_t node, const std::string& beginning) const {
  for (int number = 0;; ++number) {
    std::string key = beginning + std::to_string(number);
    if (slotOf(key) * masters_ / slots == node) return key;
  }
}

std::size_t RedisCluster::masterOf(std::uint16_t slot, std::size_t asked) const {
  std::istringstream lines(ok(*nodes_[asked], {"CLUSTER", "NODES"}));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<std::string> columns;
    for (std::string word; words >> word;) columns.push_back(word);
    for (std::size_t index = 8; index < columns.size(); ++index) {
      if (columns[index].front() == '[') continue;
      const std::size_t dash = columns[index].find('-');
      const unsigned long first = std::stoul(columns[index].substr(0, dash));
      const unsigned long last =
          dash == std::string::npos ? first : std::stoul(columns[index].substr(dash + 1));
      if (slot < first || slot > last) continue;
      const std::string address = columns[1].substr(0, columns[1].find('@'));
      for (std::size_t node = 0; node < nodes_.size(); ++node) {
        if (address == "127.0.0.1:" + std::to_string(nodes_[node]->port())) return node;
      }
    }
  }
  return nodes_.size();
}

void RedisCluster::beginMove(std::uint16_t slot, std::size_t from, std::size_t to) {
  ok(*nodes_[to], {"CLUSTER", "SETSLOT", std::to_string(slot), "IMPORTING", idOf(from)});
  ok(*nodes_[from], {"CLUSTER", "SETSLOT", std::to_string(slot), "MIGRATING", idOf(to)});
}

void RedisCluster::moveKey(const std::string& key, std::size_t from, std::size_t to) {
  ok(*nodes_[from], {"MIGRATE", "127.0.0.1", std::to_string(nodes_[to]->port()), key, "0", "5000"});
}

void RedisCluster::moveAllKeys(std::uint16_t slot, std::size_t from, std::size_t to) {
  while (true) {
    std::istringstream keys(ok(*nodes_[from], {"CLUSTER", "GETKEYSINSLOT", std::to_string(slot), "100"}));
    bool any = false;
    for (std::string key; std::getline(keys, key);) {
      moveKey(key, from, to);
      any = true;
    }
    if (!any) return;
  }
}

void RedisCluster::endMove(std::uint16_t slot, std::size_t to) {
  const std::string id = idOf(to);
  ok(*nodes_[to], {"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", id});
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (node == to || !runs_[node]) continue;
    // A replica refuses it, and hears of it from the others.
    nodes_[node]->command({"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", id});
  }
  // Or the next move may win a lower epoch than this one, and the nodes disagree about it for a while.
  const auto allAgree = [&] {
    std::set<std::string> epochs;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (!runs_[node]) continue;
      if (masterOf(slot, node) != to) return false;
      epochs.insert(epochOf(id, node));
    }
    return epochs.size() == 1;
  };
  expect(waitUntil(allAgree, patience), "agree about a slot");
}

void RedisCluster::move(std::uint16_t slot, std::size_t from, std::size_t to) {
  beginMove(slot, from, to);
  moveAllKeys(slot, from, to);
  endMove(slot, to);
}

std::size_t RedisCluster::addNode() {
  nodes_.push_back(std::make_unique<RedisServer>(options_));
  runs_.push_back(true);
  const std::size_t added = nodes_.size() - 1;
  meet(added);
  const auto isKnown = [&] {
    for (std::size_t node = 0; node < added; ++node) {
      if (runs_[node] && ok(*nodes_[node], {"CLUSTER", "NODES"}).find(idOf(added)) == std::string::npos) {
        return false;
      }
    }
    return isWell(added);
  };
  expect(waitUntil(isKnown, patience), "take a node in");
  return added;
}

void RedisCluster::removeNode(std::size_t node) {
  const std::string id = idOf(node);
  for (std::size_t other = 0; other < nodes_.size(); ++other) {
    if (other != node && runs_[other]) ok(*nodes_[other], {"CLUSTER", "FORGET", id});
  }
  kill(node);
}

void RedisCluster::awaitWell() const {
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (runs_[node]) expect(waitUntil([&] { return isWell(node); }, patience), "become well");
  }
}

// WAIT would count for its own connection's writes only.
void RedisCluster::awaitReplicas(std::size_t master) const {
  const auto field = [&](std::size_t node, const std::string& name) {
    const std::string info = "\n" + ok(*nodes_[node], {"INFO", "replication"});
    const std::size_t at = info.find("\n" + name + ":");
    return at == std::string::npos ? 0 : std::stoll(info.substr(at + name.size() + 2));
  };
  const long long written = field(master, "master_repl_offset");
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (!runs_[node] || field(node, "master_port") != nodes_[master]->port()) continue;
    expect(waitUntil([&] { return field(node, "slave_repl_offset") >= written; }, patience), "replicate");
  }
}

void RedisCluster::kill(std::size_t node) {
  nodes_[node]->kill();
  runs_[node] = false;
}

void RedisCluster::restart(std::size_t node) {
  nodes_[node]->restart();
  runs_[node] = true;
  awaitWell();
}

std::string RedisCluster::epochOf(const std::string& id, std::size_t asked) const {
  std::istringstream lines(ok(*nodes_[asked], {"CLUSTER", "NODES"}));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    if (!line.starts_with(id)) continue;
    for (int column = 0; column < 7; ++column) words >> word;
    return word;
  }
  return {};
}

std::string RedisCluster::idOf(std::size_t node) const { return ok(*nodes_[node], {"CLUSTER", "MYID"}); }

void RedisCluster::meet(std::size_t node) {
  // Its bus has another port than Redis would guess.
  std::istringstream own(ok(*nodes_[0], {"CLUSTER", "NODES"}));
  std::string bus;
  for (std::string line; std::getline(own, line);) {
    if (line.find("myself") == std::string::npos) continue;
    const std::size_t at = line.find('@');
    bus = line.substr(at + 1, line.find_first_of(", ", at) - at - 1);
  }
  ok(*nodes_[node], {"CLUSTER", "MEET", "127.0.0.1", std::to_string(nodes_[0]->port()), bus});
}

// A replica that has not linked up yet takes over from nobody.
bool RedisCluster::isWell(std::size_t node) const {
  const auto says = [&](const std::vector<std::string>& question, const std::string& text) {
    return nodes_[node]->command(question).find(text) != std::string::npos;
  };
  return says({"CLUSTER", "INFO"}, "cluster_state:ok") &&
         !says({"INFO", "replication"}, "master_link_status:down");
}

}  // namespace lockkeeper::test
