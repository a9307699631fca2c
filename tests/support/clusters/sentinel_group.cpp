#include "sentinel_group.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "wait_until.h"

namespace lockkeeper::test {
namespace {

constexpr std::size_t sentinels = 3;
// Of those who do not watch: a sentinel that may not log in must not be let in as one of them.
constexpr const char* password = "keeps";
constexpr const char* watcher = "user watcher on >watches ~* &* +@all";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

SentinelGroup::SentinelGroup(SentinelGroupOptions options) : options_(std::move(options)) {
  for (std::size_t index = 0; index <= options_.replicas; ++index) {
    RedisOptions server{.password = password,
                        .users = {watcher},
                        .arguments = {"--masterauth", password, "--repl-diskless-sync-delay", "0"}};
    server.arguments.insert(server.arguments.end(), options_.arguments.begin(), options_.arguments.end());
    if (index > 0) {
      server.arguments.insert(server.arguments.end(),
                              {"--replicaof", "127.0.0.1", std::to_string(first().port())});
    }
    servers_.push_back(std::make_unique<RedisServer>(server));
  }
  const std::string name = "mymaster";
  for (std::size_t index = 0; index < sentinels; ++index) {
    sentinels_.push_back(std::make_unique<RedisServer>(RedisOptions{
        .password = options_.sentinelPassword,
        .sentinelLines = {
            "sentinel monitor " + name + " 127.0.0.1 " + std::to_string(first().port()) + " 2",
            "sentinel down-after-milliseconds " + name + " 1000",
            "sentinel failover-timeout " + name + " 4000", "sentinel parallel-syncs " + name + " 2",
            "sentinel auth-user " + name + " watcher", "sentinel auth-pass " + name + " watches",
            options_.sentinelPassword.empty() ? "sentinel announce-ip 127.0.0.1"
                                              : "sentinel sentinel-pass " + options_.sentinelPassword}}));
  }
  if (!waitUntil([&] { return settled(); }, std::chrono::seconds{40})) {
    throw std::runtime_error("the sentinels do not find each other: " + sentinels_[0]->log());
  }
}

bool SentinelGroup::settled() const {
  for (std::size_t index = 1; index < servers_.size(); ++index) {
    if (!contains(servers_[index]->command({"INFO", "replication"}), "master_link_status:up")) return false;
  }
  const std::string expected =
      "slaves=" + std::to_string(options_.replicas) + ",sentinels=" + std::to_string(sentinels);
  return std::all_of(sentinels_.begin(), sentinels_.end(), [&](const auto& each) {
    return contains(each->command({"INFO", "sentinel"}), expected);
  });
}

std::string SentinelGroup::uri(const std::string& query) const {
  std::string text = std::string("redis+sentinel://:") + password + "@";
  for (const auto& each : sentinels_) {
    text += (each == sentinels_.front() ? "" : ",") + ("127.0.0.1:" + std::to_string(each->port()));
  }
  return text + "/mymaster" + (query.empty() ? "" : "?" + query);
}

RedisServer* SentinelGroup::master() const {
  std::map<std::string, int> votes;
  for (const auto& each : sentinels_) {
    try {
      ++votes[each->command({"SENTINEL", "get-master-addr-by-name", "mymaster"})];
    } catch (const std::runtime_error&) {
      // One that does not answer has no vote.
    }
  }
  for (const auto& each : servers_) {
    if (votes["127.0.0.1\n" + std::to_string(each->port()) + "\n"] >= 2) return each.get();
  }
  return nullptr;
}

RedisServer& SentinelGroup::awaitFailover() const {
  RedisServer* found = nullptr;
  const auto another = [&] {
    found = master();
    return found != nullptr && found != servers_.front().get();
  };
  if (!waitUntil(another, std::chrono::seconds{40})) {
    throw std::runtime_error("no failover: " + sentinels_[0]->log());
  }
  return *found;
}

void SentinelGroup::cutOffSentinels() {
  first().command({"ACL", "SETUSER", "watcher", "off"});
  first().command({"CLIENT", "KILL", "USER", "watcher"});
}

}  // namespace lockkeeper::test
