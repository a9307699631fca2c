#include "redis_notices.h"

#include <array>
#include <utility>

#include "lockkeeper/key.h"
#include "script.h"
#include "scripts.h"
#include "server_error.h"

namespace lockkeeper::redis {

namespace {

constexpr std::size_t repliesPerNotice = 3;

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
    : connector_(std::move(options), std::move(environment)), channel_(connector_) {}

std::vector<Notice> RedisNotices::pin(std::string_view board, std::string_view name, std::string_view text,
                                      std::optional<std::chrono::milliseconds> keep, Instant deadline) {
  forkGuard_.check();
  const std::string key = boardKey(board);
  const std::string length = std::to_string(keep ? keep->count() : 0);
  const std::array<std::string_view, 1> keys = {key};
  const std::array<std::string_view, 3> arguments = {name, text, length};
  Request wire;
  executeScripts(channel_, wire, deadline,
                 [&](Request& call, Script::By by) { noticesScript().addTo(call, by, keys, arguments); });
  return noticesIn(answer(wire));
}

std::vector<Notice> RedisNotices::notices(std::string_view board, Instant deadline) {
  forkGuard_.check();
  const std::string key = boardKey(board);
  const std::array<std::string_view, 1> keys = {key};
  Request wire;
  executeScripts(channel_, wire, deadline,
                 [&](Request& call, Script::By by) { noticesScript().addTo(call, by, keys, {}); });
  return noticesIn(answer(wire));
}

bool RedisNotices::replace(std::string_view board, std::string_view name,
                           const std::optional<std::string>& expected, std::string_view text,
                           Instant deadline) {
  forkGuard_.check();
  const std::string key = boardKey(board);
  const std::array<std::string_view, 1> keys = {key};
  const std::array<std::string_view, 3> arguments = {name, text, expected ? *expected : std::string_view()};
  Request wire;
  executeScripts(channel_, wire, deadline, [&](Request& call, Script::By by) {
    replaceScript().addTo(call, by, keys, std::span(arguments).first(expected ? 3 : 2));
  });
  const Reply& reply = answer(wire);
  if (!reply.isInteger(0) && !reply.isInteger(1)) unexpected();
  return reply.integer == 1;
}

void RedisNotices::unpin(std::string_view board, std::string_view name, Instant deadline) {
  forkGuard_.check();
  Request wire;
  wire.add({"HDEL", boardKey(board), name});
  channel_.execute(wire, deadline);
  answer(wire);
}

const Reply& RedisNotices::answer(const Request& request) const {
  const Reply& reply = request.reply(0);
  if (reply.kind == ReplyKind::error) {
    const ServerFault fault = faultOf(connector_.store(), reply);
    throwError(fault.code, fault.text);
  }
  return reply;
}

std::vector<Notice> RedisNotices::noticesIn(const Reply& reply) {
  if (reply.kind != ReplyKind::array || reply.items.size() % repliesPerNotice != 0) unexpected();
  std::vector<Notice> all;
  for (std::size_t i = 0; i < reply.items.size(); i += repliesPerNotice) {
    if (reply.items[i + 1].kind != ReplyKind::integer) unexpected();
    all.push_back({reply.items[i].text, reply.items[i + 2].text,
                   std::chrono::milliseconds(reply.items[i + 1].integer)});
  }
  return all;
}

void RedisNotices::unexpected() {
  const std::string why = "the server sent a reply of an unexpected form";
  channel_.disconnect(why);
  throw ProtocolError(connector_.store() + ": " + why);
}

}  // namespace lockkeeper::redis
