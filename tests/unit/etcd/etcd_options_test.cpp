#include "lockkeeper/etcd/etcd_options.h"

#include "lockkeeper/error.h"
#include "lockkeeper/etcd/etcd_driver.h"
#include "malformed_uris.h"
#include "refusal.h"

#include <gtest/gtest.h>

namespace lockkeeper::etcd {
namespace {

EtcdOptions read(const std::string& uri) { return EtcdOptions::fromUri(StoreUri::parse(uri)); }

std::string refused(const std::string& uri) {
  try {
    (void)read(uri);
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()).find("s3cr3t"), std::string::npos) << error.what();
    return error.what();
  }
  return "accepted";
}

TEST(EtcdOptions, NoMessageHasAPartOfAPasswordThatIsWrittenWrongly) {
  for (const std::string& uri : test::malformedUris(5'000, test::MarkedPart::password, "etcd")) {
    const std::string message = test::refusalOf<std::exception>([&] { read(uri); });
    ASSERT_EQ(message.find(test::uriMarker), std::string::npos) << uri << "\n" << message;
  }
}

TEST(EtcdOptions, ReadsAUri) {
  const EtcdOptions options =
      read("etcd://shop:s3%2Fcr3t@h1,h2:4001,[::1]:2/eu/locks/?connectTimeout=1s&ioTimeout=300ms");
  ASSERT_EQ(options.members.size(), 3U);
  EXPECT_EQ(options.members[0].host, "h1");
  EXPECT_EQ(options.members[0].port, 2379);
  EXPECT_EQ(options.members[1].port, 4001);
  EXPECT_EQ(options.members[2].host, "::1");
  EXPECT_EQ(options.user, "shop");
  EXPECT_EQ(options.password, "s3/cr3t");
  EXPECT_EQ(options.prefix, "/eu/locks");
  EXPECT_EQ(options.connectTimeout, std::chrono::seconds{1});
  EXPECT_EQ(options.ioTimeout, std::chrono::milliseconds{300});
  EXPECT_FALSE(options.tls);
  EXPECT_EQ(options.display(), "etcd://h1:2379,h2:4001,[::1]:2/eu/locks");
}

TEST(EtcdOptions, HasDefaults) {
  for (const char* uri : {"etcd://h", "etcd://h/"}) EXPECT_EQ(read(uri).prefix, "/lockkeeper");
  EXPECT_TRUE(read("etcds://h").tls);
}

TEST(EtcdOptions, NamesWhatIsWrongAndWhatIsAllowed) {
  const auto says = [](const std::string& uri, const std::string& part) {
    EXPECT_NE(refused(uri).find(part), std::string::npos) << refused(uri);
  };
  says("etcd:///prefix", "hosts of the members");
  says("etcd://h/a%20b", "printable");
  says("etcd://h/" + std::string(201, 'x'), "1 to 200");
  says("etcd://h?ttl=3", "ttl");
  says("etcd://h?caFile=/none", "caFile");
  says("etcds://h?caFile=/none", "cannot be read");
  says("etcd://h?ioTimeout=2h", "ioTimeout");
  says("etcd://shop@h", "belong together");
  says("etcd://h1,shop:s3cr3t@h2", "first host");
}

TEST(EtcdOptions, ThoseOfAProgramAreChecked) {
  EtcdOptions none;
  none.members.clear();
  EXPECT_THROW(EtcdDriver{none}, std::invalid_argument);
  EtcdOptions late;
  late.ioTimeout = std::chrono::milliseconds{0};
  EXPECT_THROW(EtcdDriver{late}, std::invalid_argument);
}

}  // namespace
}  // namespace lockkeeper::etcd
