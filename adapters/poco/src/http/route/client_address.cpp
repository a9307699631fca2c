#include "http/route/client_address.h"

#include <Poco/NumberParser.h>
#include <Poco/String.h>
#include <Poco/StringTokenizer.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "lockkeeper/error.h"
#include "lockkeeper/internal/check_range.h"

namespace lockkeeper::poco {
namespace {

using Poco::StringTokenizer;
using Poco::Net::HTTPServerRequest;
using Poco::Net::IPAddress;

constexpr std::size_t ipv4Bytes = 4;
constexpr std::size_t bitsPerByte = 8;

unsigned bits(const IPAddress& address) { return static_cast<unsigned>(address.length() * bitsPerByte); }

// A dual-stack socket shows IPv4 peers as ::ffff:192.0.2.7, which is the same client. And no scope, such as
// the %eth0 of fe80::1%eth0: Poco masks no address that has one.
IPAddress plain(const IPAddress& address) {
  if (address.family() != IPAddress::IPv6) return address;
  const auto* bytes = static_cast<const char*>(address.addr());
  if (!address.isIPv4Mapped()) return {bytes, address.length()};
  return {bytes + address.length() - ipv4Bytes, ipv4Bytes};
}

bool isUnixSocket(const HTTPServerRequest& request) {
  return request.clientAddress().family() == Poco::Net::SocketAddress::UNIX_LOCAL;
}

IPAddress masked(const IPAddress& address, unsigned prefix) {
  return address & IPAddress(prefix, address.family());
}

// Strictly: Poco reads an IPv4 address as the C library does, which takes "10.1" for 10.0.0.1.
std::optional<IPAddress> parseAddress(const std::string& text) {
  IPAddress address;
  if (text.empty() || !IPAddress::tryParse(text, address)) return std::nullopt;
  if (address.family() == IPAddress::IPv4 && address.toString() != text) return std::nullopt;
  return plain(address);
}

// "192.0.2.7", "192.0.2.7:4711", "2001:db8::1", "[2001:db8::1]:4711"; proxies write them all.
std::optional<IPAddress> parseForwarded(std::string text) {
  if (text.starts_with('[')) {
    text = text.substr(1, text.find(']') - 1);
  } else if (std::ranges::count(text, ':') == 1) {
    text = text.substr(0, text.find(':'));
  }
  return parseAddress(text);
}

// All entries of all fields, in the order in which they were added.
std::vector<std::string> forwardedFor(const HTTPServerRequest& request) {
  std::vector<std::string> entries;
  for (const auto& [name, value] : request) {
    if (Poco::icompare(name, "X-Forwarded-For") != 0) continue;
    for (const auto& entry : StringTokenizer(value, ",", StringTokenizer::TOK_TRIM)) entries.push_back(entry);
  }
  return entries;
}

}  // namespace

std::string peerOf(const HTTPServerRequest& request) {
  return isUnixSocket(request) ? "unix" : request.clientAddress().host().toString();
}

std::string forwardedOf(const HTTPServerRequest& request) {
  std::string all;
  for (const auto& entry : forwardedFor(request)) all += (all.empty() ? "" : ", ") + entry;
  return all;
}

ClientAddress::ClientAddress(const ClientOptions& options) : ipv6Prefix_(options.ipv6Prefix) {
  checkRange("lockkeeper.http.ipv6Prefix", ipv6Prefix_, 1, 128);
  for (const auto& entry : StringTokenizer(options.trustedProxies, ",",
                                           StringTokenizer::TOK_TRIM | StringTokenizer::TOK_IGNORE_EMPTY)) {
    const auto slash = entry.find('/');
    const auto address = parseAddress(entry.substr(0, slash));
    unsigned prefix = address ? bits(*address) : 0;
    bool valid = address.has_value();
    if (valid && slash != std::string::npos) {
      valid =
          Poco::NumberParser::tryParseUnsigned(entry.substr(slash + 1), prefix) && prefix <= bits(*address);
    }
    if (!valid) {
      throw std::invalid_argument("lockkeeper.http.trustedProxies has " + quoted(entry) +
                                  ": addresses and networks are allowed, such as 10.0.0.0/8 or ::1");
    }
    proxies_.push_back({masked(*address, prefix), IPAddress(prefix, address->family())});
  }
}

std::string ClientAddress::of(const HTTPServerRequest& request) const {
  if (isUnixSocket(request)) return peerOf(request);
  IPAddress client = plain(request.clientAddress().host());
  if (!isProxy(client)) return display(client);
  const auto forwarded = forwardedFor(request);
  for (auto entry = forwarded.rbegin(); entry != forwarded.rend(); ++entry) {
    const auto address = parseForwarded(*entry);
    if (!address) break;  // The proxy that wrote it is the last address that somebody vouches for.
    client = *address;
    if (!isProxy(client)) break;
  }
  return display(client);
}

bool ClientAddress::isProxy(const IPAddress& address) const {
  return std::ranges::any_of(proxies_, [&](const Network& network) {
    return network.address.family() == address.family() && (address & network.mask) == network.address;
  });
}

std::string ClientAddress::display(const IPAddress& address) const {
  if (address.family() == IPAddress::IPv4 || ipv6Prefix_ >= bits(address)) return address.toString();
  return masked(address, ipv6Prefix_).toString() + "/" + std::to_string(ipv6Prefix_);
}

}  // namespace lockkeeper::poco
