#include "store/redis_records.h"

#include <array>
#include <utility>

#include "lockkeeper/base/key.h"
#include "scripts.h"
#include "store/companion_key.h"
#include "wire/protocol/script.h"

namespace lockkeeper::redis {

namespace {

constexpr std::size_t repliesPerRecord = 4;

// What a user of an ACL needs for shared records.
constexpr std::string_view recordPermissions =
    "+@connection +info +time +eval +evalsha +hget +hgetall +hset +hdel, on its keys";

const Script& recordsScript() {
  static const Script& script = *new Script(scripts::records);
  return script;
}

const Script& replaceScript() {
  static const Script& script = *new Script(scripts::replace_record);
  return script;
}

}  // namespace

RedisRecords::RedisRecords(RedisOptions options, Environment environment)
    : store_(std::move(options), std::move(environment)) {}

std::vector<SharedRecord> RedisRecords::write(std::string_view table, std::string_view name,
                                              std::string_view text,
                                              std::optional<std::chrono::milliseconds> keep,
                                              Instant deadline) {
  store_.forkGuard.check();
  const std::string key = tableKey(table);
  const std::string length = std::to_string(keep ? keep->count() : 0);
  const std::array<std::string_view, 1> keys = {key};
  const std::array<std::string_view, 3> arguments = {name, text, length};
  Request wire;
  store_.executeScripts(wire, deadline, [&](Request& call, Script::By by) {
    recordsScript().addTo(call, by, keys, arguments);
  });
  return recordsIn(wire);
}

std::vector<SharedRecord> RedisRecords::read(std::string_view table, Instant deadline) {
  store_.forkGuard.check();
  const std::string key = tableKey(table);
  const std::array<std::string_view, 1> keys = {key};
  Request wire;
  store_.executeScripts(wire, deadline,
                        [&](Request& call, Script::By by) { recordsScript().addTo(call, by, keys, {}); });
  return recordsIn(wire);
}

bool RedisRecords::replace(std::string_view table, std::string_view name,
                           const std::optional<std::string>& expected, std::string_view text,
                           const KnownRecords& known, Instant deadline) {
  store_.forkGuard.check();
  const std::string key = tableKey(table);
  const std::array<std::string_view, 1> keys = {key};
  std::vector<std::string_view> arguments = {name, text, expected ? "1" : "0",
                                             expected ? *expected : std::string_view()};
  if (!known.prefix.empty()) {
    arguments.push_back(known.prefix);
    arguments.insert(arguments.end(), known.names.begin(), known.names.end());
  }
  Request wire;
  store_.executeScripts(wire, deadline, [&](Request& call, Script::By by) {
    replaceScript().addTo(call, by, keys, arguments);
  });
  answer(wire);
  return store_.flagOf(wire);
}

const Reply& RedisRecords::answer(const Request& request) {
  const Reply& reply = request.reply(0);
  if (reply.kind == ReplyKind::error) store_.refuse(reply, recordPermissions);
  return reply;
}

std::vector<SharedRecord> RedisRecords::recordsIn(const Request& request) {
  const Reply& reply = answer(request);
  if (reply.kind != ReplyKind::array || reply.items.size() % repliesPerRecord != 0) {
    store_.unexpected(request);
  }
  std::vector<SharedRecord> all;
  for (std::size_t i = 0; i < reply.items.size(); i += repliesPerRecord) {
    for (const std::size_t number : {i + 1, i + 3}) {
      if (reply.items[number].kind != ReplyKind::integer) store_.unexpected(request);
    }
    all.push_back({reply.items[i].text, reply.items[i + 2].text,
                   std::chrono::milliseconds(reply.items[i + 1].integer),
                   static_cast<std::uint64_t>(reply.items[i + 3].integer)});
  }
  return all;
}

}  // namespace lockkeeper::redis
