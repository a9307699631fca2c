#pragma once

#include <memory>
#include <string>
#include <utility>

#include "lockkeeper/testing/fake_clock.h"
#include "scripted_server.h"
#include "wire/mux/multiplexer.h"

namespace lockkeeper::redis {

/// A multiplexer with a connection to a scripted server.
class Client {
 public:
  explicit Client(std::uint16_t port, std::chrono::milliseconds ioTimeout = std::chrono::seconds{5},
                  Environment given = {})
      : environment(std::move(given)), server({optionsFor(port, ioTimeout)}, environment) {}

  /// Time passes only as the test says; the I/O timeout is an hour.
  Client(std::uint16_t port, std::shared_ptr<Clock> clock)
      : Client(port, std::chrono::hours{1}, environmentWith(std::move(clock))) {}

  static Environment environmentWith(std::shared_ptr<Clock> clock) {
    Environment environment;
    environment.clock = std::move(clock);
    return environment;
  }

  Instant in(std::chrono::milliseconds length) const { return environment.clock->now() + length; }

  /// Sends "PING <text>" and returns the first reply.
  Reply ask(const std::string& text, std::chrono::milliseconds patience = std::chrono::seconds{5}) {
    Request request;
    request.add({"PING", text});
    server.execute(request, in(patience));
    return request.reply(0);
  }

  const Environment environment;
  Multiplexer server;

 private:
  static RedisOptions optionsFor(std::uint16_t port, std::chrono::milliseconds ioTimeout) {
    RedisOptions options;
    options.port = port;
    options.ioTimeout = ioTimeout;
    return options;
  }
};

inline void echoRest(ScriptedServer::Peer& peer) {
  while (true) peer.say(bulk(peer.command()[1]));
}

inline void echo(ScriptedServer::Peer& peer, int) {
  peer.logIn();
  echoRest(peer);
}

/// A port of this machine that nobody listens on.
inline std::uint16_t unusedPort() {
  return ScriptedServer([](ScriptedServer::Peer&, int) {}).port();
}

}  // namespace lockkeeper::redis
