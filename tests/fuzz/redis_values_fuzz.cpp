// What other clients have written to a Redis, and what a server says of itself: the reader of legacy values
// and that of INFO must not crash, and nobody's bytes reach a message.

#include <string>
#include <string_view>

#include "fuzz_target.h"
#include "legacy/legacy_value.h"
#include "lockkeeper/error.h"
#include "lockkeeper/redis/redis_options.h"
#include "wire/dial/server_checks.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockkeeper::redis;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const LegacyValue value = parseLegacyValue("string", text);
  require(value.kind != LegacyValue::Kind::free, "a key with a value is not free");
  require(value.what.empty() || value.kind != LegacyValue::Kind::withToken,
          "our own values need no description");
  for (const char each : value.what) require(each >= ' ' && each <= '~', "what is said of a value is ASCII");
  require(text.ends_with(legacyGrant(text)), "a grant is the end of its value");
  if (value.kind == LegacyValue::Kind::foreign)
    require(value.ends.count() == 0, "a foreign value has no end");
  require(parseLegacyValue("list", text).kind == LegacyValue::Kind::foreign, "a list is nobody's lock");

  const ServerFacts facts = parseInfo(text);
  const RedisOptions options;
  durabilityOf(facts);
  evictionFault("redis", facts, options);
  try {
    checkServer("redis", facts, options);
  } catch (const lockkeeper::Error& fault) {
    requireOneLine(fault);
  }
  return 0;
}

std::vector<std::string> fuzzSeeds() {
  return {
      "1700000000",
      "1700000000:0123456789abcdef0123456789abcdef@host:1",
      "1700000000.5",
      "i:1700000000;",
      "s:10:\"1700000000\";",
      "d:1700000000.25;",
      "99999999999999999999",
      "# "
      "Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:0123456789abcdef\r\nmaxmemory:0\r\n"
      "maxmemory_policy:noeviction\r\nrole:master\r\nconnected_slaves:0\r\nloading:0\r\naof_enabled:1\r\n"
      "cluster_enabled:0\r\n"};
}
