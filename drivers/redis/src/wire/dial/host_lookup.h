#pragma once

#include <Poco/Net/SocketAddress.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lockkeeper::redis {

struct RedisOptions;

/// Finds the addresses of a host. Blocks as long as it likes; throws when there is none.
using Resolver =
    std::function<std::vector<Poco::Net::SocketAddress>(const std::string& host, std::uint16_t port)>;

/// Asks the system's resolver; IPv4 comes first.
std::vector<Poco::Net::SocketAddress> resolveBySystem(const std::string& host, std::uint16_t port);

/// The addresses at which a server may be. A name is looked up on a thread of the moment, since the resolver
/// of the C library blocks as long as it likes and nothing may wait for it longer than its own deadline; the
/// thread ends with the resolver's answer, whether or not anybody still wants it.
class HostLookup {
 public:
  /// The path of a Unix socket and a numeric address are known at once.
  HostLookup(const RedisOptions& options, const Resolver& resolve);

  bool done() const;

  /// Readable once it is done; -1 when it is known at once.
  int descriptor() const;

  /// Only when done(). Throws StreamBroken when there is no such host.
  const std::vector<Poco::Net::SocketAddress>& addresses() const;

 private:
  struct Answer;
  std::shared_ptr<Answer> answer_;  // shared with the thread
};

}  // namespace lockkeeper::redis
