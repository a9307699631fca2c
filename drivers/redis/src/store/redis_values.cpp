#include <utility>
#include <vector>

#include "lockkeeper/driver/key.h"
#include "lockkeeper/redis/value_store.h"
#include "store/redis_store.h"

namespace lockkeeper::redis {

static_assert(maxValueBytes <= maxBulkBytes, "a value must fit into a reply");

namespace {

constexpr std::string_view needs = "+@connection +info +get +set +del, on the keys of the values";

// The reserved mark comes first, so that no lock has this key and a hash tag in the caller's key still
// counts.
std::string storedKey(std::string_view key) { return std::string(reservedMark).append("v:").append(key); }

}  // namespace

class RedisValues::Impl {
 public:
  Impl(RedisOptions options, Environment environment) : store_(std::move(options), std::move(environment)) {}

  bool inherited() const { return store_.forkGuard.inherited(); }

  Reply ask(std::initializer_list<std::string_view> words, Instant deadline) {
    store_.forkGuard.check();
    Request request;
    request.add(words);
    store_.channel.execute(request, deadline);
    const Reply& reply = request.reply(0);
    if (reply.kind == ReplyKind::error) store_.refuse(reply, needs);
    return reply;
  }

  bool flagOf(const Reply& reply) { return store_.flagOf(reply); }

  /// True for OK, false for nil, which SET answers when NX has kept it from doing anything.
  bool doneIn(const Reply& reply) {
    const bool done = reply.kind == ReplyKind::status && reply.text == "OK";
    if (!done && reply.kind != ReplyKind::nil) store_.unexpected();
    return done;
  }

  [[noreturn]] void unexpected() { store_.unexpected(); }

 private:
  RedisStore store_;
};

RedisValues::RedisValues(RedisOptions options, Environment environment)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(environment))) {}

RedisValues::~RedisValues() {
  // The socket is the parent's: closing it properly would end the parent's connection.
  if (impl_->inherited()) static_cast<void>(impl_.release());
}

std::optional<std::string> RedisValues::get(std::string_view key, Instant deadline) {
  checkKey(key);
  Reply reply = impl_->ask({"GET", storedKey(key)}, deadline);
  if (reply.kind == ReplyKind::nil) return std::nullopt;
  if (reply.kind != ReplyKind::bulk) impl_->unexpected();
  return std::move(reply.text);
}

void RedisValues::put(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                      Instant deadline) {
  checkValue(key, value, ttl);
  const std::string length = std::to_string(ttl.count());
  if (!impl_->doneIn(impl_->ask({"SET", storedKey(key), value, "PX", length}, deadline))) impl_->unexpected();
}

bool RedisValues::add(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                      Instant deadline) {
  checkValue(key, value, ttl);
  const std::string length = std::to_string(ttl.count());
  return impl_->doneIn(impl_->ask({"SET", storedKey(key), value, "NX", "PX", length}, deadline));
}

bool RedisValues::erase(std::string_view key, Instant deadline) {
  checkKey(key);
  return impl_->flagOf(impl_->ask({"DEL", storedKey(key)}, deadline));
}

}  // namespace lockkeeper::redis
