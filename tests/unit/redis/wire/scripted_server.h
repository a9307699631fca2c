#pragma once

#include <Poco/Net/ServerSocket.h>
#include <Poco/Net/StreamSocket.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "wire/protocol/resp.h"

namespace lockkeeper::redis {

inline const std::string goodInfo =
    "\r\nredis_version:7.0.15\r\nrun_id:1\r\nmaxmemory_policy:noeviction\r\nrole:master\r\naof_enabled:0\r\n";

std::string bulk(const std::string& text);

/// A server on a free loopback port that says what a test wants. Each connection is served on a thread of its
/// own by `serve`, which may return at any time; the connection is then closed.
class ScriptedServer {
 public:
  class Peer {
   public:
    explicit Peer(Poco::Net::StreamSocket socket) : socket_(std::move(socket)) {}

    /// The next command; throws when the client has closed the connection.
    std::vector<std::string> command();
    void say(const std::string& bytes);
    void logIn(const std::string& info = goodInfo);  ///< Answers what a client sends first.
    void close();

   private:
    Poco::Net::StreamSocket socket_;
    ReplyReader reader_;
  };
  using Serve = std::function<void(Peer& peer, int connection)>;

  explicit ScriptedServer(Serve serve, std::uint16_t port = 0);
  ~ScriptedServer();

  std::uint16_t port() const { return listener_.address().port(); }
  int connections() const { return connections_; }

 private:
  void run();

  const Serve serve_;
  Poco::Net::ServerSocket listener_;
  std::atomic<int> connections_{0};
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::vector<Poco::Net::StreamSocket> sockets_;
  std::vector<std::jthread> serving_;
  std::jthread accepting_;
};

}  // namespace lockkeeper::redis
