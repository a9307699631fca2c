#include "records/redis_records.h"

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

// Runs a script on the table's key. Throws for an error that the server answers.
void run(const Script& script, RedisStore& store, std::string_view key,
         std::span<const std::string_view> arguments, Request& wire, Instant deadline) {
  store.executeScripts(wire, deadline, [&](Request& call, Script::By by) {
    script.addTo(call, by, std::array{key}, arguments);
  });
  const Reply& reply = wire.reply(0);
  if (reply.kind == ReplyKind::error) store.refuse(reply, recordPermissions);
}

std::vector<SharedRecord> recordsIn(RedisStore& store, const Request& wire) {
  const Reply& reply = wire.reply(0);
  if (reply.kind != ReplyKind::array || reply.items.size() % repliesPerRecord != 0) store.unexpected(wire);
  std::vector<SharedRecord> all;
  for (std::size_t i = 0; i < reply.items.size(); i += repliesPerRecord) {
    for (const std::size_t number : {i + 1, i + 3}) {
      if (reply.items[number].kind != ReplyKind::integer) store.unexpected(wire);
    }
    all.push_back({reply.items[i].text, reply.items[i + 2].text,
                   std::chrono::milliseconds(reply.items[i + 1].integer),
                   static_cast<std::uint64_t>(reply.items[i + 3].integer)});
  }
  return all;
}

}  // namespace

RedisRecords::RedisRecords(std::shared_ptr<ClusterMap> map, const RedisOptions& options,
                           const Environment& environment)
    : servers_(std::move(map), options, [environment](const RedisOptions& server) {
        return std::make_shared<RedisStore>(server, environment);
      }) {}

std::vector<SharedRecord> RedisRecords::write(std::string_view table, std::string_view name,
                                              std::string_view text,
                                              std::optional<std::chrono::milliseconds> keep,
                                              std::span<const WantedRecord> wanted, Instant deadline) {
  const std::string length = std::to_string(keep ? keep->count() : 0);
  std::vector<std::string> stamps;
  for (const WantedRecord& each : wanted) stamps.push_back(std::to_string(each.known));
  std::vector<std::string_view> arguments = {name, text, length};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    arguments.insert(arguments.end(), {wanted[i].name, stamps[i]});
  }
  return ask(Script::of<scripts::write_record>(), table, arguments, deadline);
}

std::vector<SharedRecord> RedisRecords::read(std::string_view table, Instant deadline) {
  return ask(Script::of<scripts::records>(), table, {}, deadline);
}

std::vector<SharedRecord> RedisRecords::ask(const Script& script, std::string_view table, Arguments arguments,
                                            Instant deadline) {
  forkGuard_.check();
  const std::string key = tableKey(table);
  return servers_.at(key, deadline, [&](RedisStore& store) {
    Request wire;
    run(script, store, key, arguments, wire, deadline);
    return recordsIn(store, wire);
  });
}

bool RedisRecords::replace(std::string_view table, std::string_view name,
                           const std::optional<std::string>& expected, std::string_view text,
                           std::span<const KnownRecord> known, Instant deadline) {
  forkGuard_.check();
  const std::string key = tableKey(table);
  std::vector<std::string_view> arguments = {name, text, expected ? "1" : "0",
                                             expected ? *expected : std::string_view()};
  std::vector<std::string> stamps;
  for (const KnownRecord& each : known) stamps.push_back(std::to_string(each.stamp));
  for (std::size_t i = 0; i < known.size(); ++i) {
    arguments.insert(arguments.end(), {known[i].name, stamps[i]});
  }
  return servers_.at(key, deadline, [&](RedisStore& store) {
    Request wire;
    run(Script::of<scripts::replace_record>(), store, key, arguments, wire, deadline);
    return store.flagOf(wire);
  });
}

}  // namespace lockkeeper::redis
