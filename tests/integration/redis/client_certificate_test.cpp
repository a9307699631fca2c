#include "redis_fixture.h"
#include "tls_files.h"

namespace lockkeeper::test {
namespace {

/// A server that lets in only clients with a certificate of its own authority.
class ClientCertificate : public ::testing::Test {
 protected:
  std::string uri(const std::string& query) const {
    return "rediss://localhost:" + std::to_string(server.tlsPort()) +
           "?caFile=" + files.authority().string() + query;
  }
  static std::shared_ptr<LockDriver> open(const std::string& uri) {
    StoreRegistry registry;
    redis::use(registry);
    return registry.open(uri);
  }
  static std::string query(const std::filesystem::path& certificate, const std::filesystem::path& key) {
    return "&certFile=" + certificate.string() + "&keyFile=" + key.string();
  }

  const TlsFiles& files = TlsFiles::shared();
  const RedisServer server{{.tls = true, .arguments = {"--tls-auth-clients", "yes"}}};
};

TEST_F(ClientCertificate, OpensTheDoor) {
  const auto driver = open(uri(query(files.certificate(), files.key())));
  const Claimant who{};
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
}

TEST_F(ClientCertificate, OpensTheDoorToLegacyLocks) {
  const auto driver =
      open("redis+legacy://localhost:" + std::to_string(server.tlsPort()) +
           "?tls=on&caFile=" + files.authority().string() + query(files.certificate(), files.key()));
  const Claimant who{};
  ASSERT_TRUE(granted(driver->acquire(who.request())));
  EXPECT_EQ(driver->release(who.claim(), soon()), ReleaseOutcome::released);
}

TEST_F(ClientCertificate, IsAskedForByNameWhereItIsMissing) {
  try {
    (void)open(uri(""))->acquire(Claimant{}.request());
    ADD_FAILURE() << "let in";
  } catch (const Error& fault) {
    EXPECT_NE(std::string(fault.what()).find("certFile"), std::string::npos) << fault.what();
  }
}

TEST_F(ClientCertificate, MustFitItsKey) {
  try {
    (void)open(uri(query(files.certificate(), files.otherHostKey())));
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& fault) {
    EXPECT_NE(std::string(fault.what()).find("keyFile"), std::string::npos) << fault.what();
  }
}

TEST_F(ClientCertificate, AndItsKeyBelongTogether) {
  EXPECT_THROW((void)open(uri("&certFile=" + files.certificate().string())), ConfigError);
  EXPECT_THROW((void)open(uri("&keyFile=" + files.key().string())), ConfigError);
  EXPECT_THROW((void)open(uri(query("/no/such/file", files.key()))), ConfigError);
}

}  // namespace
}  // namespace lockkeeper::test
