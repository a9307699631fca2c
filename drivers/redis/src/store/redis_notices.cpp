#include "store/redis_notices.h"

#include <array>
#include <utility>

#include "lockkeeper/driver/key.h"
#include "scripts.h"
#include "wire/protocol/script.h"

namespace lockkeeper::redis {

namespace {

constexpr std::size_t repliesPerNotice = 3;

// What a user of an ACL needs for boards.
constexpr std::string_view boardPermissions =
    "+@connection +info +time +eval +evalsha +hget +hgetall +hset +hdel, on its keys";

std::string boardKey(std::string_view board) {
  return std::string(board).append(reservedMark).append("board");
}

const Script& noticesScript() {
  static const Script script(scripts::notices);
  return script;
}

const Script& replaceScript() {
  static const Script script(scripts::replace_notice);
  return script;
}

}  // namespace

RedisNotices::RedisNotices(RedisOptions options, Environment environment)
    : store_(std::move(options), std::move(environment)) {}

std::vector<Notice> RedisNotices::pin(std::string_view board, std::string_view name, std::string_view text,
                                      std::optional<std::chrono::milliseconds> keep, Instant deadline) {
  store_.forkGuard.check();
  const std::string key = boardKey(board);
  const std::string length = std::to_string(keep ? keep->count() : 0);
  const std::array<std::string_view, 1> keys = {key};
  const std::array<std::string_view, 3> arguments = {name, text, length};
  Request wire;
  store_.executeScripts(wire, deadline, [&](Request& call, Script::By by) {
    noticesScript().addTo(call, by, keys, arguments);
  });
  return noticesIn(wire);
}

std::vector<Notice> RedisNotices::notices(std::string_view board, Instant deadline) {
  store_.forkGuard.check();
  const std::string key = boardKey(board);
  const std::array<std::string_view, 1> keys = {key};
  Request wire;
  store_.executeScripts(wire, deadline,
                        [&](Request& call, Script::By by) { noticesScript().addTo(call, by, keys, {}); });
  return noticesIn(wire);
}

bool RedisNotices::replace(std::string_view board, std::string_view name,
                           const std::optional<std::string>& expected, std::string_view text,
                           Instant deadline) {
  store_.forkGuard.check();
  const std::string key = boardKey(board);
  const std::array<std::string_view, 1> keys = {key};
  const std::array<std::string_view, 3> arguments = {name, text, expected ? *expected : std::string_view()};
  Request wire;
  store_.executeScripts(wire, deadline, [&](Request& call, Script::By by) {
    replaceScript().addTo(call, by, keys, std::span(arguments).first(expected ? 3 : 2));
  });
  answer(wire);
  return store_.flagOf(wire);
}

void RedisNotices::unpin(std::string_view board, std::string_view name, Instant deadline) {
  store_.forkGuard.check();
  Request wire;
  wire.add({"HDEL", boardKey(board), name});
  store_.execute(wire, deadline);
  answer(wire);
}

const Reply& RedisNotices::answer(const Request& request) {
  const Reply& reply = request.reply(0);
  if (reply.kind == ReplyKind::error) store_.refuse(reply, boardPermissions);
  return reply;
}

std::vector<Notice> RedisNotices::noticesIn(const Request& request) {
  const Reply& reply = answer(request);
  if (reply.kind != ReplyKind::array || reply.items.size() % repliesPerNotice != 0)
    store_.unexpected(request);
  std::vector<Notice> all;
  for (std::size_t i = 0; i < reply.items.size(); i += repliesPerNotice) {
    if (reply.items[i + 1].kind != ReplyKind::integer) store_.unexpected(request);
    all.push_back({reply.items[i].text, reply.items[i + 2].text,
                   std::chrono::milliseconds(reply.items[i + 1].integer)});
  }
  return all;
}

}  // namespace lockkeeper::redis
