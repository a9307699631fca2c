#include "node_fault.h"

#include "redlock_fixture.h"

namespace lockkeeper::test {

namespace {

using Kind = ProxyFault::Kind;

void pass(RedisServer&, FaultProxy& proxy) { proxy.passThrough(); }

// What was swallowed is missing in the connections' streams, which no network does.
void passAnew(RedisServer&, FaultProxy& proxy) {
  proxy.passThrough();
  proxy.endConnections(Ending::rst);
}

}  // namespace

const NodeFault nodeFaults[5] = {
    {"Killed", false,
     [](RedisServer& server, FaultProxy& proxy) {
       server.kill();
       proxy.endConnections(Ending::rst);
     },
     [](RedisServer& server, FaultProxy&) { server.restart(); }},
    {"Stopped", false, [](RedisServer& server, FaultProxy&) { server.pause(); },
     [](RedisServer& server, FaultProxy&) { server.resume(); }},
    {"Blackholed", false, [](RedisServer&, FaultProxy& proxy) { proxy.set({.kind = Kind::blackhole}); },
     passAnew},
    {"AnsweringGarbage", false,
     [](RedisServer&, FaultProxy& proxy) {
       proxy.set({.kind = Kind::flood, .text = "HTTP/1.1 400 Bad Request\r\n\r\n"});
     },
     pass},
    {"AnsweringLate", true,
     [](RedisServer&, FaultProxy& proxy) {
       proxy.set({.kind = Kind::delay, .pause = nodeTimeout + nodeTimeout / 2});
     },
     pass},
};

void PrintTo(const NodeFault& fault, std::ostream* out) { *out << fault.name; }

}  // namespace lockkeeper::test
