// Store URIs of arbitrary bytes: parsing must not crash, must refuse only with ConfigError in one line, and
// what is accepted must be well-formed.

#include <exception>
#include <string>
#include <string_view>

#include "fuzz_target.h"
#include "lockkeeper/error.h"
#include "lockkeeper/store_uri.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const lockkeeper::StoreUri uri = lockkeeper::StoreUri::parse(text);
    require(!uri.scheme().empty(), "an accepted URI has a scheme");
    require(uri.display().starts_with(uri.scheme()), "the text for messages begins with the scheme");
    for (const lockkeeper::Endpoint& endpoint : uri.endpoints()) {
      require(!endpoint.host.empty(), "an endpoint has a host");
      require(!endpoint.port || *endpoint.port != 0, "a port is not 0");
    }
    uri.allowOnly({"fence", "db"});
    uri.flag("fence", true);
    uri.number("db", 0, 0, 15);
  } catch (const lockkeeper::ConfigError& fault) {
    requireOneLine(fault);
  }
  return 0;
}

std::vector<std::string> fuzzSeeds() {
  return {"memory:",
          "redis://127.0.0.1:6379/0",
          "redis://ann:hunter2@host:6379/3?fence=off&db=1",
          "rediss://:hunter2@[::1]:7000/?caFile=%2Fetc%2Fca.pem",
          "redis+unix:///run/redis.sock?db=2",
          "redis+sentinel://:hunter2@s1,s2:5000,[::1]/main/2?tls=on&caFile=%2Fetc%2Fca.pem",
          "redlock://h1:1,h2:2,h3:3?x=%zz",
          "redis+cluster://:hunter2@h1,h2:5000,[::1]/0?tls=on&caFile=%2Fetc%2Fca.pem",
          "redis://u:${NO_SUCH_VARIABLE_ANYWHERE}@h"};
}
