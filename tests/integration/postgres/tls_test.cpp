// TLS, unix sockets, names with several addresses, and where the password is.

#include <string>

#include "lockkeeper/error.h"
#include "postgres_fixture.h"
#include "tls_files.h"
#include "wait_until.h"

namespace lockkeeper::test {
namespace {

using namespace std::chrono_literals;

class PostgresTls : public PostgresTest {
 protected:
  static void offer(const std::filesystem::path& certificate, const std::filesystem::path& key) {
    PostgresServer& server = postgresServer();
    server.addFile("server.crt", readFile(certificate));
    server.addFile("server.key", readFile(key));
    server.execute("ALTER SYSTEM SET ssl = on");
    server.execute("SELECT pg_reload_conf()");
    ASSERT_TRUE(waitUntil([&] { return server.ask("SHOW ssl") == "on"; }));
  }
  std::string host(const std::string& name) const {
    return "postgres+version://keeper:p%40ss%2Fword@" + name + ":" + std::to_string(store.server.port()) +
           "/locks";
  }
  static std::string trusting(const std::filesystem::path& authority) {
    return "tls=on&caFile=" + authority.string();
  }
};

TEST_F(PostgresTls, TheCertificateIsVerified) {
  const TlsFiles& files = TlsFiles::shared();
  EXPECT_THROW(
      (void)openPostgres(host("localhost"), trusting(files.authority()))->acquire(Claimant{}.request()),
      ConfigError)
      << "a server without TLS";
  offer(files.certificate(), files.key());
  const auto verified = openPostgres(host("localhost"), trusting(files.authority()));
  EXPECT_TRUE(granted(verified->acquire(Claimant{}.request())));
  EXPECT_EQ(store.server.ask(
                "SELECT bool_or(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = "
                "'keeper'"),
            "t");
  const auto stranger = openPostgres(host("localhost"), trusting(files.strangerAuthority()));
  EXPECT_THROW((void)stranger->acquire(Claimant{}.request()), ConfigError);
  offer(files.otherHostCertificate(), files.otherHostKey());
  const auto other = openPostgres(host("localhost"), trusting(files.authority()));
  EXPECT_TRUE(waitUntil([&] {
    try {
      (void)openPostgres(host("localhost"), trusting(files.authority()))->acquire(Claimant{}.request());
      return false;  // The server has not read its new certificate yet.
    } catch (const ConfigError&) {
      return true;
    }
  })) << "a certificate for another host";
  EXPECT_TRUE(granted(openPostgres(host("localhost"), "tls=on&verify=off")->acquire(Claimant{}.request())));
}

// localhost has an address of IPv6, too, at which the server does not listen.
TEST_F(PostgresTls, AnAddressThatRefusesIsPassedOver) {
  EXPECT_TRUE(granted(openPostgres(host("localhost"))->acquire(Claimant{}.request())));
}

TEST_F(PostgresTls, UnixSocketsAndPasswordFiles) {
  const std::string uri =
      "postgres+version://keeper@127.0.0.1:" + std::to_string(store.server.port()) + "/locks";
  EXPECT_TRUE(
      granted(openPostgres(uri, "socket=" + store.server.socketFolder())->acquire(Claimant{}.request())));
  const TempFolder folder;
  writeFile(folder / "password", "p@ss/word\n");
  const auto driver = openPostgres(uri, "passwordFile=" + (folder / "password").string());
  EXPECT_TRUE(granted(driver->acquire(Claimant{}.request())));
}

TEST_F(PostgresTls, MistakesOfAUriAreNamed) {
  const auto said = [&](const std::string& uri, const std::string& query) -> std::string {
    try {
      (void)openPostgres(uri, query);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::string good = host("localhost");
  EXPECT_NE(said(good, "tabel=x").find("tabel"), std::string::npos);
  EXPECT_NE(said(good, "table=a-b").find("a-b"), std::string::npos);
  EXPECT_NE(said(good, "socket=here").find("here"), std::string::npos);
  EXPECT_NE(said(good, "connections=0").find("connections"), std::string::npos);
  EXPECT_NE(said(good, "verify=off").find("tls"), std::string::npos);
  EXPECT_NE(said("postgres+version://localhost/locks", "").find("user"), std::string::npos);
  EXPECT_NE(said("postgres+version://keeper@localhost", "").find("database"), std::string::npos);
}

}  // namespace
}  // namespace lockkeeper::test
