#include <utility>
#include <vector>

#include "lockkeeper/driver/key.h"
#include "lockkeeper/redis/value_store.h"
#include "store/companion_key.h"
#include "store/redis_store.h"

namespace lockkeeper::redis {

static_assert(maxValueBytes <= maxBulkBytes, "a value must fit into a reply");

namespace {

constexpr std::string_view valueRights = "+@connection +info +get +set +del, on the keys of the values";

}  // namespace

class RedisValues::Impl : public RedisStore {
 public:
  using RedisStore::RedisStore;

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
  Reply& reply = request.reply(0);
  if (reply.kind == ReplyKind::nil) return std::nullopt;
  if (reply.kind != ReplyKind::bulk) impl_->unexpected(request);
  return std::move(reply.text);
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

}  // namespace lockkeeper::redis
