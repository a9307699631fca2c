#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPRequestHandlerFactory.h>
#include <Poco/Net/HTTPServer.h>
#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>
#include <Poco/Net/ServerSocket.h>

#include <algorithm>
#include <string>

#include "cli_fixture.h"
#include "fault_proxy.h"
#include "free_port.h"
#include "tls_files.h"

namespace lockkeeper::test {
namespace {

/// Whatever is wrong: one line that names it, the right exit code, no secret, and the command was not
/// started.
class Mistakes : public ::testing::Test {
 protected:
  void refuses(const std::vector<std::string>& arguments, int exitCode, const std::string& named) {
    std::vector<std::string> line{LOCKKEEPER_COMMAND};
    line.insert(line.end(), arguments.begin(), arguments.end());
    const Finished finished = runToEnd(line);
    EXPECT_EQ(finished.exitCode, exitCode) << finished.errors;
    EXPECT_EQ(finished.output, "");
    EXPECT_EQ(finished.errors.find("lockkeeper: "), 0U) << finished.errors;
    EXPECT_EQ(std::count(finished.errors.begin(), finished.errors.end(), '\n'), 1) << finished.errors;
    EXPECT_NE(finished.errors.find(named), std::string::npos)
        << finished.errors << " does not name " << named;
    EXPECT_EQ(finished.errors.find("s3cr3t"), std::string::npos) << finished.errors;
    EXPECT_FALSE(std::filesystem::exists(folder / "started"));
  }

  /// `run` and `show` on a store.
  void refusesStore(const std::string& uri, int exitCode, const std::string& named) {
    SCOPED_TRACE(uri);
    refuses({"run", "--store", uri, "k", "--", "touch", folder / "started"}, exitCode, named);
    refuses({"show", "--store", uri, "k"}, exitCode, named);
  }

  static std::string at(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

  TempFolder folder;
};

TEST_F(Mistakes, OutputThatCannotBeWrittenIsNoSuccess) {
  for (const std::string words : {"--help", "--version", "completion bash", "list --store memory:"}) {
    const Finished full =
        runToEnd({"sh", "-c", std::string(LOCKKEEPER_COMMAND) + " " + words + " >/dev/full"});
    EXPECT_EQ(full.exitCode, 70) << words;
    EXPECT_EQ(full.errors, "lockkeeper: the output could not be written\n");
    const Finished unread = runToEnd(
        {"bash", "-c", "exec 3> >(:); wait $!; " + std::string(LOCKKEEPER_COMMAND) + " " + words + " >&3"});
    EXPECT_EQ(unread.errors, "") << "nobody wants it";
  }
}

TEST_F(Mistakes, InTheCommandLine) {
  const std::string store = "memory:";
  refuses({}, 64, "--help");
  refuses({"rum"}, 64, "rum");
  refuses({"show", "--stroe", store, "k"}, 64, "stroe");
  refuses({"show", "--password=s3cr3t", "k"}, 64, "password");
  refuses({"break", "--yes=s3cr3t", "k"}, 64, "yes");
  refuses({"show", "--store"}, 64, "store");
  refuses({"show", "--store", store}, 64, "KEY");
  refuses({"show", "--store", store, "k", "l"}, 64, "KEY");
  refuses({"show", "k"}, 64, "--store");
  refuses({"run", "--store", store, "k"}, 64, "--");
  refuses({"run", "--store", store, "k", "--"}, 64, "COMMAND");
  refuses({"run", "--store", store, "--", "true"}, 64, "KEY");
  refuses({"run", "--store", store, "k", "true", "--", "true"}, 64, "KEY");
  refuses({"completion", "tcsh"}, 64, "bash");
}

TEST_F(Mistakes, InValues) {
  const std::vector<std::string> command{"k", "--", "touch", folder / "started"};
  const auto run = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"run", "--store", "memory:"});
    options.insert(options.end(), command.begin(), command.end());
    return options;
  };
  refuses(run({"--ttl", "3 parsecs"}), 64, "3 parsecs");
  refuses(run({"--ttl", "0s"}), 64, "ttl");
  refuses(run({"--ttl", "25h"}), 64, "24h");
  refuses(run({"--wait", "-1s"}), 64, "-1s");
  refuses(run({"--grace", "soon"}), 64, "soon");
  refuses(run({"--namespace", "a b"}), 64, "a b");
  refuses({"run", "--store", "memory:", "", "--", "true"}, 64, "key");
  refuses({"run", "--store", "memory:", std::string(513, 'k'), "--", "true"}, 64, "512");
  refuses({"show", "--store", "memory:", "k:lockkeeper:fence"}, 64, ":lockkeeper:");
}

TEST_F(Mistakes, InTheConfigurationFile) {
  const std::string path = folder / "shop.properties";
  const std::vector<std::string> show{"show", "--config", path, "k"};
  refuses(show, 78, "shop.properties");
  writeFile(path, "lockkeeper.namespace = shop\n");
  refuses(show, 78, "lockkeeper.store");
  writeFile(path, "lockkeeper.store = memory:\nlockkeeper.lock.ttl = long\n");
  refuses(show, 78, "lockkeeper.lock.ttl");
  writeFile(path, "lockkeeper.store = memory:\nlockkeeper.lock.tll = 3s\n");
  refuses(show, 78, "did you mean lockkeeper.lock.ttl?");
  writeFile(path, "lockkeeper.store = memory:\nlockkeeper.lock.operationTimeout = 2h\n");
  refuses({"run", "--config", path, "k", "--", "true"}, 78, "lockkeeper.lock: operationTimeout is 2h");
  writeFile(folder / "shop.json", R"({"lockkeeper": {"store": "memory:", "lock": {"ttl": "long"}}})");
  refuses({"show", "--config", folder / "shop.json", "k"}, 78, "lockkeeper.lock.ttl");
  writeFile(folder / "shop.json", "{");
  refuses({"show", "--config", folder / "shop.json", "k"}, 78, "shop.json");
}

TEST_F(Mistakes, InFilesThatCannotBeReadToTheirEnd) {
  const std::string directory = folder.path();
  const std::string unreadable = "/proc/self/mem";
  for (const std::string& path : {directory, unreadable, std::string("/dev/zero")}) {
    SCOPED_TRACE(path);
    refuses({"show", "--config", path, "k"}, 78, path);
    refuses({"serve", "--store", "memory:", "--break-password", path}, 78, path);
    refusesStore("redis://127.0.0.1?passwordFile=" + path, 78, path);
  }
  for (const char* ending : {".json", ".xml", ".properties"}) {
    std::filesystem::create_directory(folder / (std::string("d") + ending));
    refuses({"show", "--config", folder / (std::string("d") + ending), "k"}, 78, std::string("d") + ending);
  }
  refusesStore("rediss://localhost?caFile=" + directory, 78, directory);
}

TEST_F(Mistakes, InTheStoresUri) {
  refusesStore("redis", 78, "scheme");
  refusesStore("mongodb://:s3cr3t@127.0.0.1", 78, "mongodb");
  refusesStore("redis://:s3cr3t@127.0.0.1:99999", 78, "65535");
  refusesStore("redis://:s3cr3t@127.0.0.1:port", 78, "port");
  refusesStore("redis://:s3cr3t@127.0.0.1/one", 78, "one");
  refusesStore("redis://:s3cr3t@127.0.0.1?fance=off", 78, "fance");
  refusesStore("redis://:s3cr3t@127.0.0.1?fence=maybe", 78, "maybe");
  refusesStore("redis://:${LOCKKEEPER_NO_SUCH_VARIABLE}@127.0.0.1", 78, "LOCKKEEPER_NO_SUCH_VARIABLE");
  refusesStore("redis://127.0.0.1?passwordFile=/no/such/file", 78, "/no/such/file");
  refusesStore("rediss://localhost?caFile=/no/such/ca.crt", 78, "/no/such/ca.crt");
}

TEST_F(Mistakes, InCredentials) {
  const RedisServer redis({.password = "s3cr3t-right",
                           .users = {"user reader on >s3cr3t-reader ~* -@all +@connection +info +get",
                                     "user elsewhere on >s3cr3t-else ~other* +@all"}});
  refusesStore("redis://" + at(redis.port()), 78, "password");
  refusesStore("redis://:s3cr3t-wrong@" + at(redis.port()), 78, "password");
  refusesStore("redis://nobody:s3cr3t-wrong@" + at(redis.port()), 78, "password");
  refusesStore("redis://reader:s3cr3t-reader@" + at(redis.port()), 78, "permit");
  refusesStore("redis://elsewhere:s3cr3t-else@" + at(redis.port()), 78, "permit");
}

TEST_F(Mistakes, InRightsThatOnlyAScriptNeeds) {
  for (const std::string missing : {"set", "time"}) {
    SCOPED_TRACE(missing);
    const RedisServer redis({.users = {"user scripted on >s3cr3t ~* +@all -" + missing}});
    const std::string store = "redis://scripted:s3cr3t@" + at(redis.port());
    refuses({"run", "--store", store, "k", "--", "touch", folder / "started"}, 78, "permit");
    EXPECT_EQ(redis.command({"EXISTS", "k"}), "0") << "a claim that was refused must not be half done";
  }
}

TEST_F(Mistakes, InTls) {
  const RedisServer redis({.tls = true});
  const RedisServer other({.tls = true, .otherHostCertificate = true});
  const TlsFiles& files = TlsFiles::shared();
  const auto uri = [](std::uint16_t port, const std::filesystem::path& authority) {
    return "rediss://:s3cr3t@localhost:" + std::to_string(port) + "?caFile=" + authority.string();
  };
  refusesStore(uri(redis.tlsPort(), files.strangerAuthority()), 78, "certificate");
  refusesStore(uri(other.tlsPort(), files.authority()), 78, "localhost");
}

class PlainAnswer : public Poco::Net::HTTPRequestHandlerFactory {
  struct Handler : Poco::Net::HTTPRequestHandler {
    void handleRequest(Poco::Net::HTTPServerRequest&, Poco::Net::HTTPServerResponse& response) override {
      response.send() << "hello\n";
    }
  };
  Poco::Net::HTTPRequestHandler* createRequestHandler(const Poco::Net::HTTPServerRequest&) override {
    return new Handler;
  }
};

TEST_F(Mistakes, AWebServerOnThePort) {
  Poco::Net::ServerSocket socket(Poco::Net::SocketAddress("127.0.0.1", 0));
  Poco::Net::HTTPServer server(new PlainAnswer, socket, new Poco::Net::HTTPServerParams);
  server.start();
  refusesStore("redis://:s3cr3t@" + at(socket.address().port()), 69, "127.0.0.1");
  server.stopAll(true);
}

TEST_F(Mistakes, AServerThatAnswersHttpToEverything) {
  const RedisServer redis;
  FaultProxy proxy(redis.port());
  std::size_t fired = 0;
  for (const char* command : {"show", "list"}) {
    proxy.set(
        {.kind = ProxyFault::Kind::replace, .text = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"});
    std::vector<std::string> arguments{command, "--store", "redis://:s3cr3t@" + at(proxy.port())};
    if (std::string(command) == "show") arguments.push_back("k");
    refuses(arguments, 69, "Redis");
    fired += proxy.fired();
  }
  EXPECT_EQ(fired, 2U);
}

TEST_F(Mistakes, AStoreThatIsNotThere) {
  refusesStore("redis://:s3cr3t@" + at(freePort()), 69, "127.0.0.1");
  refusesStore("redis+unix:///no/such/redis.sock", 69, "/no/such/redis.sock");
  refusesStore("redis://:s3cr3t@no-such-host.invalid", 69, "no-such-host.invalid");
}

TEST_F(Mistakes, AStoreThatDoesNotAnswer) {
  RedisServer redis;
  redis.pause();
  refusesStore("redis://:s3cr3t@" + at(redis.port()), 69, "127.0.0.1");
}

}  // namespace
}  // namespace lockkeeper::test
