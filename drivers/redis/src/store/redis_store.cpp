#include "store/redis_store.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lockkeeper/driver/key.h"
#include "wire/protocol/server_error.h"

namespace lockkeeper::redis {

namespace {

constexpr std::string_view keysPerScan = "500";

// `prefix` as a glob pattern that matches exactly what starts with it.
std::string globOf(std::string_view prefix) {
  std::string glob;
  for (const char byte : prefix) {
    if (std::string_view("*?[]^\\-").find(byte) != std::string_view::npos) glob.push_back('\\');
    glob.push_back(byte);
  }
  return glob + "*";
}

RedisOptions checked(RedisOptions options) {
  options.check();
  return options;
}

}  // namespace

RedisStore::RedisStore(RedisOptions options, const Environment& environment)
    : server_({checked(std::move(options))}, environment) {}

bool RedisStore::lacksScript(const Request& request) {
  const auto& replies = request.answers().front().replies;
  return std::any_of(replies.begin(), replies.end(),
                     [](const Reply& reply) { return isError(reply, "NOSCRIPT"); });
}

bool RedisStore::flagOf(const Request& request, std::size_t index) {
  const Reply& reply = request.reply(index);
  if (reply.kind == ReplyKind::error) refuse(reply);
  if (!reply.isInteger(0) && !reply.isInteger(1)) unexpected(request);
  return reply.integer == 1;
}

RenewOutcome RedisStore::failedRenewal(const Reply& error) const {
  const ErrorCode code = faultOf(name(), error).code;
  return code == ErrorCode::outcomeUnknown ? RenewOutcome::unknown : RenewOutcome::unavailable;
}

std::string RedisStore::faultIn(const Reply& error) const { return faultOf(name(), error).text; }

void RedisStore::refuse(const Reply& error, std::string_view needs) const {
  const ServerFault fault = faultOf(name(), error, needs);
  throwError(fault.code, fault.text);
}

void RedisStore::unexpected(const Request& request) {
  throw ProtocolError(leaveForForm(request.connection()));
}

std::string RedisStore::leaveForForm(std::uint64_t connection) {
  const std::string why = "the server sent a reply of an unexpected form";
  server_.disconnect(0, connection, why);
  return name() + ": " + why;
}

void RedisStore::scan(std::string_view prefix, std::string_view type, Instant deadline,
                      const std::function<bool(std::span<const std::string_view> keys)>& visit) {
  const std::string glob = globOf(prefix);
  std::unordered_set<std::string> seen;  // a scan may meet a key more than once
  std::string cursor = "0";
  do {
    std::vector<std::string_view> words = {"SCAN", cursor, "MATCH", glob, "COUNT", keysPerScan};
    if (!type.empty()) words.insert(words.end(), {"TYPE", type});
    Request request;
    request.add(words);
    execute(request, deadline);
    const Reply& page = request.reply(0);
    if (page.kind == ReplyKind::error) refuse(page);
    if (page.items.size() != 2 || page.items[1].kind != ReplyKind::array) unexpected(request);
    cursor = page.items[0].text;

    std::vector<std::string_view> keys;
    for (const Reply& key : page.items[1].items) {
      const bool companion = key.text.find(reservedMark) != std::string::npos;
      if (!companion && seen.insert(key.text).second) keys.push_back(key.text);
    }
    if (!keys.empty() && !visit(keys)) return;
  } while (cursor != "0");
}

}  // namespace lockkeeper::redis
