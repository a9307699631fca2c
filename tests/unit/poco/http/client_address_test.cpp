#include "http/route/client_address.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fake_request.h"
#include "lockkeeper/error.h"

namespace lockkeeper::poco {
namespace {

std::string address(const std::string& proxies, const std::string& peer,
                    const std::vector<std::string>& forwarded = {}, unsigned ipv6Prefix = 64) {
  FakeRequest request("GET", "/", peer);
  for (const auto& field : forwarded) request.add("X-Forwarded-For", field);
  return ClientAddress({.trustedProxies = proxies, .ipv6Prefix = ipv6Prefix}).of(request);
}

TEST(ClientAddress, IsThePeerWhenNoProxyIsTrusted) {
  EXPECT_EQ(address("", "192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(address("", "192.0.2.1", {"198.51.100.7"}), "192.0.2.1");
  EXPECT_EQ(address("10.0.0.0/8", "192.0.2.1", {"198.51.100.7"}), "192.0.2.1") << "not one of the proxies";
}

TEST(ClientAddress, IsWhatATrustedProxyHasSeen) {
  EXPECT_EQ(address("10.0.0.0/8", "10.1.2.3", {"198.51.100.7"}), "198.51.100.7");
  EXPECT_EQ(address("10.0.0.0/8, 172.16.0.1", "10.1.2.3", {"198.51.100.7, 172.16.0.1"}), "198.51.100.7");
  EXPECT_EQ(address("10.1.2.3", "10.1.2.3", {"198.51.100.7:5555"}), "198.51.100.7");
  EXPECT_EQ(address("10.1.2.3", "10.1.2.3"), "10.1.2.3") << "the proxy speaks for itself";
  EXPECT_EQ(address("10.0.0.0/8", "10.1.2.3", {"10.9.9.9, 10.8.8.8"}), "10.9.9.9");
}

TEST(ClientAddress, IsNotWhatAClientClaims) {
  EXPECT_EQ(address("10.0.0.0/8", "10.1.2.3", {"1.1.1.1, 198.51.100.7"}), "198.51.100.7");
  EXPECT_EQ(address("10.0.0.0/8", "10.1.2.3", {"1.1.1.1", "198.51.100.7"}), "198.51.100.7");
  EXPECT_EQ(address("10.0.0.0/8", "10.1.2.3", {"10.7.7.7, 198.51.100.7, 10.6.6.6"}), "198.51.100.7");
  // What cannot be read ends the chain: its writer is the last one who is vouched for.
  for (const char* unreadable : {"unknown", "", "1.1.1.1 2.2.2.2", "_hidden", "[", "999.1.1.1"}) {
    EXPECT_EQ(address("10.0.0.0/8", "10.1.2.3", {"1.1.1.1, " + std::string(unreadable) + ", 10.6.6.6"}),
              "10.6.6.6")
        << unreadable;
  }
}

TEST(ClientAddress, OfIpv6IsTheNetworkThatAClientHas) {
  EXPECT_EQ(address("", "2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(address("", "2001:db8:1:2:ffff::1"), "2001:db8:1:2::/64");
  EXPECT_EQ(address("", "2001:db8:1:3::1"), "2001:db8:1:3::/64");
  EXPECT_EQ(address("", "2001:db8:1:2::1", {}, 128), "2001:db8:1:2::1");
  EXPECT_EQ(address("::1", "::1", {"[2001:db8:1:2::1]:443"}), "2001:db8:1:2::/64");
  EXPECT_EQ(address("fd00::/8", "fd12::1", {"2001:db8:1:2::1"}), "2001:db8:1:2::/64");
}

TEST(ClientAddress, OfAMappedIpv4IsTheIpv4One) {
  EXPECT_EQ(address("", "::ffff:192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(address("10.0.0.0/8", "::ffff:10.1.2.3", {"::ffff:198.51.100.7"}), "198.51.100.7");
}

TEST(ClientAddress, HasNoScope) {
  const std::string linkLocal = "fe80::1%lo";
  EXPECT_EQ(address("", linkLocal), "fe80::/64");
  EXPECT_EQ(address("", linkLocal, {}, 128), "fe80::1");
  EXPECT_EQ(address("10.0.0.0/8, fe80::/10", linkLocal, {"198.51.100.7"}), "198.51.100.7");
  EXPECT_EQ(address(linkLocal, linkLocal, {linkLocal + ", 198.51.100.7"}), "198.51.100.7");
  EXPECT_EQ(address(linkLocal, "fe80::1", {"198.51.100.7"}), "198.51.100.7");
}

TEST(ClientAddress, OfAUnixSocketIsOneForAll) {
  EXPECT_EQ(address("", "/tmp/socket"), "unix");
  EXPECT_EQ(address("10.0.0.0/8", "/tmp/socket", {"198.51.100.7"}), "unix");
}

TEST(ClientAddress, RefusesWhatIsNoNetwork) {
  for (const char* proxies :
       {"proxy.example", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/x", "::1/129", "10.0.0", "/8"}) {
    try {
      address(proxies, "192.0.2.1");
      ADD_FAILURE() << proxies;
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find(proxies), std::string::npos) << error.what();
    }
  }
}

TEST(ClientAddress, OfIpv6IsOneToAllBitsLong) {
  for (const unsigned bits : {1U, 128U}) EXPECT_NO_THROW(address("", "2001:db8::1", {}, bits)) << bits;
  for (const unsigned bits : {0U, 129U}) {
    try {
      (void)address("", "2001:db8::1", {}, bits);
      ADD_FAILURE() << bits << " bits were accepted";
    } catch (const std::invalid_argument& error) {
      EXPECT_EQ(error.what(),
                "lockkeeper.http.ipv6Prefix is " + std::to_string(bits) + ": 1 to 128 are allowed");
    }
  }
}

}  // namespace
}  // namespace lockkeeper::poco
