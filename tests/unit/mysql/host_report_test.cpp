#include "hosts/host_report.h"

#include "lockkeeper/error.h"

#include <gmock/gmock.h>

namespace lockkeeper::mysql {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Reports = std::vector<HostReport>;

ServerOptions hosts(const std::string& names = "a,b:3307,c") {
  return ServerOptions::fromUri(StoreUri::parse("mysql+version://shop:s3cr3t@" + names + "/locks"));
}

std::size_t chosen(const Reports& reports) { return writableAmong(reports, hosts()); }

template <class Failure>
std::string choice(const Reports& reports) {
  try {
    return "chose " + std::to_string(chosen(reports));
  } catch (const Failure& error) {
    EXPECT_THAT(error.what(), Not(HasSubstr("s3cr3t")));
    return error.what();
  }
}

const HostReport writable{.state = HostState::writable, .server = "1"};
const HostReport readOnly{.state = HostState::readOnly, .why = "b is read-only"};
const HostReport refused{.state = HostState::refused, .why = "Access denied"};
const HostReport dead{.state = HostState::unreachable, .why = "Can't connect"};

TEST(WritableHost, IsTheOneThatTakesWritesWhateverTheOthersAre) {
  EXPECT_EQ(chosen({writable, readOnly, readOnly}), 0U);
  EXPECT_EQ(chosen({readOnly, dead, writable}), 2U);
  EXPECT_EQ(chosen({refused, writable, HostReport{}}), 1U);
}

TEST(WritableHost, IsNoneWhenNobodyTakesWritesAndEachSaysWhy) {
  EXPECT_THAT(choice<StoreUnavailable>({dead, readOnly, HostReport{}}),
              AllOf(HasSubstr("Can't connect"), HasSubstr("b is read-only"),
                    HasSubstr("mysql+version://c:3306/locks: no answer yet")));
  EXPECT_THAT(choice<StoreUnavailable>({refused, refused, dead}), HasSubstr("Access denied"))
      << "the dead one may be the primary: that passes";
}

TEST(WritableHost, IsAMatterForTheAdministratorWhenAllRefuseUs) {
  EXPECT_THAT(choice<ConfigError>({refused, refused, refused}), HasSubstr("Access denied"));
}

TEST(WritableHost, IsNoneWhenTwoTakeWrites) {
  HostReport other = writable;
  other.server = "2";
  EXPECT_THAT(choice<StoreUnavailable>({writable, other, readOnly}),
              AllOf(HasSubstr("mysql+version://a:3306/locks and mysql+version://b:3307/locks both"),
                    HasSubstr("read-only")));
  EXPECT_EQ(chosen({writable, writable, readOnly}), 0U) << "two names of one server";
  other.server = "";
  EXPECT_THAT(choice<StoreUnavailable>({writable, other, readOnly}), HasSubstr("both"));
  EXPECT_THAT(choice<StoreUnavailable>({other, other, readOnly}), HasSubstr("both"))
      << "behind a proxy nobody knows which server it is";
}

TEST(WritableHost, IsNoneWhenThereAreTwoGroups) {
  HostReport one = writable;
  one.group = "7ad9";
  HostReport two = readOnly;
  two.group = "8be0";
  EXPECT_THAT(choice<ConfigError>({one, readOnly, two}),
              AllOf(HasSubstr("//a:3306/"), HasSubstr("//c:3306/"), HasSubstr("different replication groups"),
                    HasSubstr("7ad9"), HasSubstr("8be0")));
  two.group = one.group;
  EXPECT_EQ(chosen({one, readOnly, two}), 0U);
}

TEST(WritableHost, IsNoneBesideOneThatLocksDoNotHoldOn) {
  const HostReport galera{.state = HostState::unfit, .why = "a node of a Galera cluster"};
  EXPECT_THAT(choice<ConfigError>({writable, readOnly, galera}), HasSubstr("Galera"));
}

std::string refusedUri(const std::string& rest) {
  try {
    (void)ServerOptions::fromUri(StoreUri::parse("mysql+version://" + rest));
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), Not(HasSubstr("s3cr3t")));
    return error.what();
  }
  return "accepted";
}

TEST(SeveralHosts, AreReadWithTheirPortsAndOneLogIn) {
  const ServerOptions options = hosts("a,b:3307,[::1]:3308");
  ASSERT_EQ(options.hosts.size(), 3U);
  EXPECT_EQ(options.hosts[0].host, "a");
  EXPECT_EQ(options.hosts[0].port, 3306);
  EXPECT_EQ(options.hosts[1].port, 3307);
  EXPECT_EQ(options.hosts[2].host, "::1");
  EXPECT_EQ(options.hosts[2].display, "mysql+version://[::1]:3308/locks");
  EXPECT_EQ(options.user, "shop");
  EXPECT_EQ(options.password, "s3cr3t");
  EXPECT_EQ(hosts("a").hosts[0].display, "mysql+version://a/locks");
}

TEST(SeveralHosts, AreRefusedWhereTheyMakeNoSense) {
  EXPECT_THAT(refusedUri("shop:s3cr3t@a,b:3306,a:3306/locks"), HasSubstr("names the host a:3306 twice"));
  EXPECT_THAT(
      refusedUri("shop:s3cr3t@a,root:s3cr3t@b/locks"),
      AllOf(HasSubstr("host 2 of the store's URI has a log-in of its own"), HasSubstr("for all of them")));
  EXPECT_THAT(refusedUri("shop@a,b/locks?socket=/run/my.sock"), HasSubstr("several hosts"));
  EXPECT_THAT(refusedUri("shop@a,,b/locks"), HasSubstr("no host where one is needed"));
  EXPECT_THAT(refusedUri("shop@a,b:0/locks"),
              HasSubstr("the port of host 2 of the store's URI is not a number"));
  EXPECT_THAT(refusedUri("shop@a,b,c,d,e,f,g,h,i,j/locks"), HasSubstr("names 10 hosts: it must be 1 to 9"));
  EXPECT_THAT(refusedUri("shop@a,b"), HasSubstr("the database name is ''"));
}

}  // namespace
}  // namespace lockkeeper::mysql
