#pragma once

#include <Poco/Net/SocketAddress.h>

#include <cstdint>
#include <memory>
#include <string>

namespace lockkeeper::redis {

/// Finds the address of a host. A name is looked up on a thread of the moment, since the resolver of the C
/// library blocks as long as it likes and nothing may wait for it longer than its own deadline; the thread
/// ends with the resolver's answer, whether or not anybody still wants it.
class HostLookup {
 public:
  /// Addresses are done at once.
  HostLookup(const std::string& host, std::uint16_t port);

  bool done() const;

  /// Readable once it is done; -1 for an address.
  int descriptor() const;

  /// Only when done(). Throws StreamBroken when there is no such host.
  Poco::Net::SocketAddress address() const;

 private:
  struct Answer;
  std::shared_ptr<Answer> answer_;  // shared with the thread
};

}  // namespace lockkeeper::redis
