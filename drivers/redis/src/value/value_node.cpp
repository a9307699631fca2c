#include "value/value_node.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lockkeeper/store/value_store.h"
#include "scripts.h"
#include "store/companion_key.h"
#include "wire/protocol/redirect.h"

namespace lockkeeper::redis {

static_assert(maxValueBytes <= maxBulkBytes, "a value must fit into a reply");

namespace {

using std::chrono::milliseconds;

constexpr std::string_view valueRights = "+@connection +info +get +set +del, on the keys of the values";

// For how long one request asks to be told (scripts/value/await_value.lua).
constexpr milliseconds longestWait{60'000};

// How often to look where messages would not be heard.
constexpr milliseconds lookPause{250};

}  // namespace

/// The value and the set of those who wait for it.
struct ValueNode::Keys {
  explicit Keys(std::string_view key) : value(valueKey(key)), waiting(companionKey(value, "waiting")) {}
  std::array<std::string_view, 2> both() const { return {value, waiting}; }

  const std::string value;
  const ComposedText waiting;
};

// Asks, and throws for an error.
void ValueNode::ask(Request& request, std::initializer_list<std::string_view> words, Instant deadline) {
  request.add(words);
  execute(request, deadline);
  if (request.reply(0).kind == ReplyKind::error) refuse(request.reply(0), valueRights);
}

// Whether the answer is OK; nil is what SET answers when NX has kept it from doing anything.
bool ValueNode::doneBy(const Request& request) {
  const Reply& reply = request.reply(0);
  const bool done = reply.kind == ReplyKind::status && reply.text == "OK";
  if (!done && reply.kind != ReplyKind::nil) unexpected(request);
  return done;
}

// The value, if the answer is one.
std::optional<std::string> ValueNode::valueIn(Request& request) {
  Reply& reply = request.reply(0);
  if (reply.kind == ReplyKind::nil) return std::nullopt;
  if (reply.kind != ReplyKind::bulk) unexpected(request);
  return std::move(reply.text);
}

// False when the script may not be run, or not while the keys go to another node: nothing was done then.
bool ValueNode::run(const Script& script, Request& request, const Keys& keys,
                    std::span<const std::string_view> arguments, Instant deadline) {
  executeScripts(request, deadline,
                 [&](Request& call, Script::By by) { script.addTo(call, by, keys.both(), arguments); });
  const Reply& reply = request.reply(0);
  if (isError(reply, "NOPERM") || isOnItsWay(reply)) return false;
  if (reply.kind == ReplyKind::error) refuse(reply, valueRights);
  return true;
}

std::optional<std::string> ValueNode::get(std::string_view key, Instant deadline) {
  while (true) {
    const bool sure = wasMasterLately();
    Request request;
    ask(request, {"GET", valueKey(key)}, deadline);
    auto value = valueIn(request);
    // A replica answers reads too: after a pause, the former master may lack what the present one has.
    if (value || sure || isMaster(request.connection(), deadline)) return value;
  }
}

void ValueNode::put(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                    Instant deadline) {
  const std::string length = std::to_string(ttl.count());
  Request request;
  ask(request, {"SET", valueKey(key), value, "PX", length}, deadline);
  if (!doneBy(request)) unexpected(request);
}

bool ValueNode::add(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                    Instant deadline) {
  const std::string length = std::to_string(ttl.count());
  Request request;
  ask(request, {"SET", valueKey(key), value, "NX", "PX", length}, deadline);
  return doneBy(request);
}

bool ValueNode::erase(std::string_view key, Instant deadline) {
  Request request;
  ask(request, {"DEL", valueKey(key)}, deadline);
  return flagOf(request);
}

void ValueNode::announce(std::string_view key, std::string_view value, milliseconds ttl, Instant deadline) {
  const std::string length = std::to_string(ttl.count());
  Request request;
  const std::array<std::string_view, 2> arguments = {value, length};
  if (!run(Script::of<scripts::announce_value>(), request, Keys(key), arguments, deadline)) {
    return put(key, value, ttl, deadline);
  }
  if (!doneBy(request)) unexpected(request);
}

std::optional<std::string> ValueNode::await(std::string_view key, Instant until, const std::stop_token& stop,
                                            Instant deadline) {
  if (auto value = get(key, deadline)) return value;
  const Keys keys(key);
  Subscription::Waiter waiter(subscription_, hashSlot(keys.value));
  while (!stop.stop_requested() && clock().now() < until) {
    const Subscription::Waiter::Address address = waiter.newAddress();
    const auto left = std::min(longestWait, std::chrono::ceil<milliseconds>(until - clock().now()));
    bool told = false;  // when there is a value
    if (!address.channel.empty()) {
      Request request;
      const std::string number = std::to_string(address.number);
      const std::string length = std::to_string(left.count());
      const std::array<std::string_view, 3> arguments = {address.channel, number, length};
      told = run(Script::of<scripts::await_value>(), request, keys, arguments, oneTimeout());
      auto value = told ? valueIn(request) : std::nullopt;
      if (value) return value;
    }
    waiter.wait(std::min(until, saturatingAdd(clock().now(), told ? left : lookPause)), stop);
    if (auto value = get(key, oneTimeout())) return value;
  }
  return std::nullopt;
}

}  // namespace lockkeeper::redis
