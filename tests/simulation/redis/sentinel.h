#pragma once

#include <Poco/String.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "simulation/network/network.h"
#include "simulation/redis/node.h"
#include "simulation/redis/resp.h"

namespace lockkeeper::simulation {

/// One of those that know which node is the master.
class SentinelNode final : public Server {
 public:
  SentinelNode(Network& network, std::uint32_t ip, const RedisNode& master) : ip_(ip), master_(&master) {
    network.listen(ip, 26379, *this);
  }

  std::uint32_t ip() const noexcept { return ip_; }
  /// From now on, its answer.
  void setMaster(const RedisNode& master) noexcept { master_ = &master; }

  std::unique_ptr<Session> accept(Connection& connection) override {
    return std::make_unique<Client>(*this, connection);
  }

 private:
  class Client final : public Session {
   public:
    Client(const SentinelNode& sentinel, Connection& connection)
        : sentinel_(sentinel), connection_(connection) {}

    void receive(std::string_view bytes) override {
      received_ += bytes;
      std::string_view rest = received_;
      Words words;
      std::string replies;
      while (takeCommand(rest, words)) replies += sentinel_.answer(Poco::toUpperInPlace(words[0])).encoded();
      received_.erase(0, received_.size() - rest.size());
      if (!replies.empty()) connection_.reply(replies);
    }

   private:
    const SentinelNode& sentinel_;
    Connection& connection_;
    std::string received_;
  };

  RedisReply answer(const std::string& command) const {
    if (command == "CLIENT") return RedisReply::ok();
    if (command == "INFO")
      return RedisReply::bulk("# Server\r\nredis_version:7.0.15\r\nredis_mode:sentinel\r\nrun_id:" +
                              std::to_string(ip_) + "\r\n");
    if (command == "SENTINEL")
      return RedisReply::array(
          {RedisReply::bulk(master_->address()), RedisReply::bulk(std::to_string(RedisNode::port))});
    return RedisReply::error("ERR unknown command '" + command + "'");
  }

  const std::uint32_t ip_;
  const RedisNode* master_;
};

}  // namespace lockkeeper::simulation
