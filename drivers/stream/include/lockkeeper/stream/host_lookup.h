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
  std::string host;  ///< The name that its certificate must have; empty: the one that was looked up.
};

/// Finds the addresses of a host. May block without a bound. Throws if there is none.
using Resolver = std::function<Location(const std::string& host, std::uint16_t port)>;

/// The location of a host whose numeric address is given; empty for a name.
std::optional<Location> numericLocation(const std::string& host, std::uint16_t port);

/// Asks the system's resolver; IPv4 comes first.
Location resolveBySystem(const std::string& host, std::uint16_t port);

/// Looks up the addresses of a server. The resolver of the C library may block without a bound, so it runs on
/// a temporary thread, and callers wait no longer than their deadlines. The thread ends when the resolver
/// answers, even if no caller waits for it any more. Thread-safe.
class HostLookup {
 public:
  HostLookup(const std::string& host, std::uint16_t port, const Resolver& resolve);
  /// For addresses that are known already.
  explicit HostLookup(Location known);
  HostLookup(const HostLookup&) = delete;
  HostLookup& operator=(const HostLookup&) = delete;
  ~HostLookup();

  /// Whether the lookup has ended, and with it the thread.
  bool done();

  /// A file descriptor that is readable once done() is true; -1 if nothing was looked up.
  int descriptor() const;

  /// Call it only once done() is true. Throws StreamBroken if there is no such host, or the resolver's Error.
  const Location& location() const;

 private:
  struct Answer;
  std::shared_ptr<Answer> answer_;  // shared with the thread
  std::mutex joining_;
  std::thread thread_;
};

}  // namespace lockkeeper
