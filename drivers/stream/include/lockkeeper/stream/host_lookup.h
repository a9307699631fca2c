#pragma once

#include <Poco/Net/SocketAddress.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace lockkeeper {

/// Where a server is.
struct Location {
  // NOLINTNEXTLINE(google-explicit-constructor): addresses alone are a location.
  Location(std::vector<Poco::Net::SocketAddress> all = {}, std::string itsHost = {})
      : addresses(std::move(all)), host(std::move(itsHost)) {}

  std::vector<Poco::Net::SocketAddress> addresses;
  std::string host;  ///< Which its certificate has to be for; empty: the one that was looked up.
};

/// Finds the addresses of a host. Blocks as long as it likes; throws when there is none.
using Resolver = std::function<Location(const std::string& host, std::uint16_t port)>;

/// The location of a host that is given by its numeric address; empty for a name.
std::optional<Location> numericLocation(const std::string& host, std::uint16_t port);

/// Asks the system's resolver; IPv4 comes first.
Location resolveBySystem(const std::string& host, std::uint16_t port);

/// The addresses at which a server may be. They are looked up on a thread of the moment, since the resolver
/// of the C library blocks as long as it likes and nothing may wait for it longer than its own deadline; the
/// thread ends with the resolver's answer, whether or not anybody still wants it. Thread-safe.
class HostLookup {
 public:
  HostLookup(const std::string& host, std::uint16_t port, const Resolver& resolve);
  /// Nothing is to be looked up.
  explicit HostLookup(Location known);
  HostLookup(const HostLookup&) = delete;
  HostLookup& operator=(const HostLookup&) = delete;
  ~HostLookup();

  /// When it says so, the thread has ended.
  bool done();

  /// Readable once it is done; -1 when nothing was looked up.
  int descriptor() const;

  /// Only when done(). Throws StreamBroken when there is no such host, or the Error of the resolver.
  const Location& location() const;

 private:
  struct Answer;
  std::shared_ptr<Answer> answer_;  // shared with the thread
  std::mutex joining_;
  std::thread thread_;
};

}  // namespace lockkeeper
