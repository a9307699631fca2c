#include "simulation/redis/node.h"

#include <Poco/String.h>

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "simulation/redis/cluster.h"
#include "simulation/redis/resp.h"

namespace lockkeeper::simulation {

class RedisNode::Client final : public Session {
 public:
  Client(RedisNode& node, Connection& connection)
      : node_(node), connection_(connection), number_(++node.clients_) {}
  ~Client() override {
    for (auto& [channel, listeners] : node_.channels_) listeners.erase(number_);
    node_.waiting_.erase(number_);
  }

  int process() const noexcept { return connection_.process(); }

  void receive(std::string_view bytes) override {
    received_ += bytes;
    serve();
  }

  /// Answers its WAIT, if enough replicas have what it has written, or the time is over.
  void lookAtReplicas(bool isOver) {
    const Replication& its = node_.replication_;
    const std::size_t having = its.having(wrote_);
    if (having < awaited_ && !isOver && !its.isReplica()) return;
    node_.waiting_.erase(number_);
    if (its.isReplica()) {
      connection_.reply("-UNBLOCKED force unblock from blocking operation, instance state changed\r\n");
      return connection_.close();
    }
    connection_.reply(RedisReply::of(static_cast<std::int64_t>(having)).encoded());
    serve();
  }

  void leaves(const std::string& channel) {
    connection_.reply(RedisReply::array({RedisReply::bulk("sunsubscribe"), RedisReply::bulk(channel),
                                         RedisReply::of(--listening_)})
                          .encoded());
  }

  void push(const std::string& channel, const std::string& message, bool sharded) {
    connection_.reply(RedisReply::array({RedisReply::bulk(sharded ? "smessage" : "message"),
                                         RedisReply::bulk(channel), RedisReply::bulk(message)})
                          .encoded());
  }

 private:
  void serve() {
    std::string_view rest = received_;
    static Words words;
    std::string replies;
    while (!node_.waiting_.contains(number_) && takeCommand(rest, words)) {
      ++node_.commands_;
      replies += answer(words);
    }
    received_.erase(0, received_.size() - rest.size());
    if (!replies.empty()) connection_.reply(replies);
  }

  std::string awaitReplicas(const Words& words) {
    awaited_ = static_cast<std::size_t>(redisInteger(words.at(1)).value_or(0));
    const std::size_t having = node_.replication_.having(wrote_);
    if (having >= awaited_) return RedisReply::of(static_cast<std::int64_t>(having)).encoded();
    node_.waiting_[number_] = this;
    const Time length = redisInteger(words.at(2)).value_or(0) * millisecond;
    node_.scheduler_.at(node_.scheduler_.now() + length, [&node = node_, number = number_, waits = ++waits_] {
      const auto found = node.waiting_.find(number);
      const bool same = found != node.waiting_.end() && found->second->waits_ == waits;
      if (same) found->second->lookAtReplicas(true);
    });
    return {};
  }

  std::string answer(Words& words) {
    const std::string& name = Poco::toUpperInPlace(words[0]);
    if (ClusterView* const cluster = node_.cluster()) {
      if (name == "CLUSTER") return cluster->answer(words).encoded();
      const bool asks = std::exchange(asking_, name == "ASKING");
      if (asking_) return RedisReply::ok().encoded();
      if (const auto refusal = cluster->refusal(words, asks)) return refusal->encoded();
    }
    const bool adds = name == "SUBSCRIBE" || name == "SSUBSCRIBE";
    if (!adds && name != "UNSUBSCRIBE" && name != "SUNSUBSCRIBE") {
      if (name == "PING" && listening_ > 0) {
        return RedisReply::array({RedisReply::bulk("pong"), RedisReply::bulk("")}).encoded();
      }
      if (name == "WAIT") return awaitReplicas(words);
      const std::string reply = node_.execute(*this, words).encoded();
      if (node_.keys_.wrote() || std::exchange(node_.published_, false)) {
        node_.replication_.wrote();
        wrote_ = node_.replication_.offset();
      }
      return reply;
    }
    std::string replies;
    for (std::size_t i = 1; i < words.size(); ++i) {
      auto& listeners = node_.channels_[words[i]];
      if (adds) {
        listening_ += listeners.emplace(number_, this).second ? 1 : 0;
      } else {
        listening_ -= static_cast<std::int64_t>(listeners.erase(number_));
      }
      const std::string kind = Poco::toLower(words[0]);
      replies +=
          RedisReply::array({RedisReply::bulk(kind), RedisReply::bulk(words[i]), RedisReply::of(listening_)})
              .encoded();
    }
    return replies;
  }

  RedisNode& node_;
  Connection& connection_;
  const std::uint64_t number_;
  std::string received_;
  std::int64_t listening_ = 0;
  std::int64_t wrote_ = 0;   // the server's offset after its last write
  std::size_t awaited_ = 0;  // the replicas for which it waits
  std::uint64_t waits_ = 0;
  bool asking_ = false;
};

RedisNode::RedisNode(Scheduler& scheduler, Network& network, std::string name, std::uint32_t ip,
                     std::uint64_t seed)
    : scheduler_(scheduler),
      network_(network),
      name_(std::move(name)),
      ip_(ip),
      chance_(seed ^ ip, 4),
      keys_([this] { return micros(); }),
      replication_(scheduler, keys_, Chance(seed ^ ip, 7), [this] { lookAtWaiting(); }) {
  network.listen(ip, port, *this);
  start();
}

std::string RedisNode::address() const {
  std::string text;
  for (const int shift : {24, 16, 8, 0})
    text += (text.empty() ? "" : ".") + std::to_string(ip_ >> shift & 255U);
  return text;
}

void RedisNode::restart(bool empty, bool told) {
  disconnect(told);
  channels_.clear();
  if (empty) keys_.clear();
  hasChanged_ = hasChangedScripts();
  start();
}

void RedisNode::start() {
  scripts_ = std::make_unique<ScriptEngine>([this](const Words& words) { return callOfScript(words); });
  scripts_->change(change_.first, change_.second);
  runId_.clear();
  for (int i = 0; i < 40; ++i) runId_ += "0123456789abcdef"[chance_.upTo(15)];
}

void RedisNode::changeScripts(std::string from, std::string to) {
  change_ = {std::move(from), std::move(to)};
  scripts_->change(change_.first, change_.second);
}

std::int64_t RedisNode::micros() const {
  const auto gained = static_cast<Time>(static_cast<double>(scheduler_.now()) * drift_);
  return (scheduler_.wallTime(0) + gained + wallOffset_) / microsecond;
}

std::unique_ptr<Session> RedisNode::accept(Connection& connection) {
  if (stoppedUntil_ > scheduler_.now()) return nullptr;
  return std::make_unique<Client>(*this, connection);
}

std::string RedisNode::info() const {
  return "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:" + runId_ +
         "\r\nuptime_in_seconds:1000\r\n# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n"
         "# Persistence\r\nloading:0\r\naof_enabled:1\r\n# "
         "Replication\r\nrole:" +
         (replication_.isReplica() ? "slave" : "master") +
         "\r\nconnected_slaves:" + std::to_string(replication_.replicas()) +
         "\r\n# Cluster\r\ncluster_enabled:" + (cluster_ ? "1" : "0") + "\r\n";
}

RedisReply RedisNode::execute(Client& client, const Words& named) {
  scheduler_.trace(name_, [&] {
    std::string text = "executes for " + scheduler_.process(client.process()).name + ": " + named[0];
    for (std::size_t i = named[0] == "EVAL" ? 2 : 1; i < named.size() && i < 8; ++i)
      text += " " + named[i].substr(0, 40);
    return text;
  });
  if (named[0] == "EVAL" || named[0] == "EVALSHA") return executeScript(named, named[0] == "EVALSHA");
  if (named[0] == "CLIENT" || named[0] == "SELECT" || named[0] == "AUTH") return RedisReply::ok();
  if (named[0] == "CONFIG")
    return RedisReply::array({RedisReply::bulk("appendfsync"), RedisReply::bulk("everysec")});
  if (named[0] == "PING") return RedisReply::status("PONG");
  return callOfScript(named);
}

RedisReply RedisNode::executeScript(const Words& words, bool bySha1) {
  RedisReply loaded;
  if (!bySha1) loaded = scripts_->load(words.at(1));
  if (loaded.kind == RedisReply::Kind::error) return loaded;
  const std::string& sha1 = bySha1 ? words.at(1) : loaded.text;
  if (!scripts_->knows(sha1)) return RedisReply::error("NOSCRIPT No matching script. Please use EVAL.");
  const auto keys = static_cast<std::size_t>(redisInteger(words.at(2)).value_or(0));
  const auto given = std::span(words).subspan(3);
  return scripts_->evaluate(sha1, given.first(keys), given.subspan(keys));
}

RedisReply RedisNode::callOfScript(const Words& words) {
  if (outOfMemory && Keyspace::writes(words[0]) && words[0] != "DEL" && words[0] != "PEXPIRE") {
    return RedisReply::error("OOM command not allowed when used memory > 'maxmemory'.");
  }
  if (replication_.isReplica() && Keyspace::writes(words[0]))
    return RedisReply::error("READONLY You can't write against a read only replica.");
  if (auto reply = keys_.execute(words)) return *std::move(reply);
  if (words[0] == "PUBLISH" || words[0] == "SPUBLISH")
    return publish(words.at(1), words.at(2), words[0] == "SPUBLISH");
  if (words[0] == "PUBSUB") return subscribers(words);
  if (words[0] == "INFO") return RedisReply::bulk(info());
  return RedisReply::error("ERR unknown command '" + words[0] + "'");
}

RedisReply RedisNode::publish(const std::string& channel, const std::string& message, bool sharded) {
  published_ = true;
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return RedisReply::of(0);
  for (const auto& [number, each] : found->second) {
    each->push(channel, message, sharded);
  }
  return RedisReply::of(static_cast<std::int64_t>(found->second.size()));
}

void RedisNode::dropChannels(const std::function<bool(const std::string& channel)>& which) {
  for (auto& [channel, listeners] : channels_) {
    if (!which(channel)) continue;
    for (const auto& [number, each] : listeners) each->leaves(channel);
    listeners.clear();
  }
}

void RedisNode::lookAtWaiting() {
  const auto waiting = waiting_;
  for (const auto& [number, each] : waiting) {
    if (waiting_.contains(number)) each->lookAtReplicas(false);
  }
}

RedisReply RedisNode::subscribers(const Words& words) const {
  RedisReply all = RedisReply::array();
  for (std::size_t i = 2; i < words.size(); ++i) {
    const auto found = channels_.find(words[i]);
    all.items.push_back(RedisReply::bulk(words[i]));
    all.items.push_back(
        RedisReply::of(found == channels_.end() ? 0 : static_cast<std::int64_t>(found->second.size())));
  }
  return all;
}

}  // namespace lockkeeper::simulation
