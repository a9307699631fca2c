#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "lockkeeper/base/key.h"
#include "lockkeeper/redis/value_store.h"
#include "queue/subscription.h"
#include "scripts.h"
#include "store/companion_key.h"
#include "store/redis_store.h"
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

const Script& awaitScript() {
  static const Script& script = *new Script(scripts::await_value);
  return script;
}

const Script& announceScript() {
  static const Script& script = *new Script(scripts::announce_value);
  return script;
}

/// The value and the set of those who wait for it.
struct ValueKeys {
  explicit ValueKeys(std::string_view key) : value(valueKey(key)), waiting(companionKey(value, "waiting")) {}
  std::array<std::string_view, 2> both() const { return {value, waiting}; }

  const std::string value;
  const ComposedText waiting;
};

}  // namespace

class RedisValues::Impl : public RedisStore {
 public:
  Impl(RedisOptions options, const Environment& environment)
      : RedisStore(std::move(options), environment, [this] { subscription.suspect(); }),
        subscription(this->options(), this->environment(), dialRules()) {}

  /// Asks, and throws for an error.
  void ask(Request& request, std::initializer_list<std::string_view> words, Instant deadline) {
    forkGuard.check();
    request.add(words);
    execute(request, deadline);
    if (request.reply(0).kind == ReplyKind::error) refuse(request.reply(0), valueRights);
  }

  /// Whether the answer is OK; nil is what SET answers when NX has kept it from doing anything.
  bool doneBy(const Request& request) {
    const Reply& reply = request.reply(0);
    const bool done = reply.kind == ReplyKind::status && reply.text == "OK";
    if (!done && reply.kind != ReplyKind::nil) unexpected(request);
    return done;
  }

  /// The value, if the answer is one.
  std::optional<std::string> valueIn(Request& request) {
    Reply& reply = request.reply(0);
    if (reply.kind == ReplyKind::nil) return std::nullopt;
    if (reply.kind != ReplyKind::bulk) unexpected(request);
    return std::move(reply.text);
  }

  /// False when the script may not be run, or not while the keys go to another node: nothing was done then.
  bool run(const Script& script, Request& request, const ValueKeys& keys,
           std::span<const std::string_view> arguments, Instant deadline) {
    executeScripts(request, deadline,
                   [&](Request& call, Script::By by) { script.addTo(call, by, keys.both(), arguments); });
    const Reply& reply = request.reply(0);
    if (isError(reply, "NOPERM") || isOnItsWay(reply)) return false;
    if (reply.kind == ReplyKind::error) refuse(reply, valueRights);
    return true;
  }

  Subscription subscription;
};

RedisValues::RedisValues(RedisOptions options, Environment environment)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(environment))) {}

RedisValues::~RedisValues() {
  // The socket is the parent's: closing it properly would end the parent's connection.
  if (impl_->forkGuard.inherited()) static_cast<void>(impl_.release());
}

std::optional<std::string> RedisValues::get(std::string_view key, Instant deadline) {
  checkKey(key);
  Request request;
  impl_->ask(request, {"GET", valueKey(key)}, deadline);
  auto value = impl_->valueIn(request);
  if (!value) impl_->checkIsMaster(deadline);
  return value;
}

void RedisValues::put(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                      Instant deadline) {
  checkValue(key, value, ttl);
  const std::string length = std::to_string(ttl.count());
  Request request;
  impl_->ask(request, {"SET", valueKey(key), value, "PX", length}, deadline);
  if (!impl_->doneBy(request)) impl_->unexpected(request);
}

bool RedisValues::add(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                      Instant deadline) {
  checkValue(key, value, ttl);
  const std::string length = std::to_string(ttl.count());
  Request request;
  impl_->ask(request, {"SET", valueKey(key), value, "NX", "PX", length}, deadline);
  return impl_->doneBy(request);
}

bool RedisValues::erase(std::string_view key, Instant deadline) {
  checkKey(key);
  Request request;
  impl_->ask(request, {"DEL", valueKey(key)}, deadline);
  return impl_->flagOf(request);
}

void RedisValues::announce(std::string_view key, std::string_view value, milliseconds ttl, Instant deadline) {
  checkValue(key, value, ttl);
  impl_->forkGuard.check();
  const std::string length = std::to_string(ttl.count());
  Request request;
  const std::array<std::string_view, 2> arguments = {value, length};
  if (!impl_->run(announceScript(), request, ValueKeys(key), arguments, deadline)) {
    return put(key, value, ttl, deadline);
  }
  if (!impl_->doneBy(request)) impl_->unexpected(request);
}

std::optional<std::string> RedisValues::await(std::string_view key, Instant until,
                                              const std::stop_token& stop, Instant deadline) {
  const Clock& clock = impl_->clock();
  if (auto value = get(key, deadline)) return value;
  const ValueKeys keys(key);
  Subscription::Waiter waiter(impl_->subscription, hashSlot(keys.value));
  while (!stop.stop_requested() && clock.now() < until) {
    const Subscription::Waiter::Address address = waiter.newAddress();
    const auto left = std::min(longestWait, std::chrono::ceil<milliseconds>(until - clock.now()));
    bool told = false;  // when there is a value
    if (!address.channel.empty()) {
      Request request;
      const std::string number = std::to_string(address.number);
      const std::string length = std::to_string(left.count());
      const std::array<std::string_view, 3> arguments = {address.channel, number, length};
      told = impl_->run(awaitScript(), request, keys, arguments, impl_->oneTimeout());
      auto value = told ? impl_->valueIn(request) : std::nullopt;
      if (value) return value;
    }
    waiter.wait(std::min(until, saturatingAdd(clock.now(), told ? left : lookPause)), stop);
    if (auto value = get(key, impl_->oneTimeout())) return value;
  }
  return std::nullopt;
}

}  // namespace lockkeeper::redis
