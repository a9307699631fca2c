#include "raw_redis.h"

#include <hiredis/hiredis.h>

#include <array>
#include <cstddef>
#include <stdexcept>

namespace lockkeeper::bench {

namespace {

constexpr const char* token = "0123456789abcdef0123456789abcdef";

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

std::int64_t numberIn(const Reply& reply) {
  if (reply && reply->type == REDIS_REPLY_INTEGER) return reply->integer;
  if (reply && reply->type == REDIS_REPLY_STATUS) return 1;
  if (reply && reply->type == REDIS_REPLY_NIL) return 0;
  throw std::runtime_error(reply && reply->type == REDIS_REPLY_ERROR ? reply->str : "the raw command failed");
}

}  // namespace

void RawRedis::Free::operator()(redisContext* context) const { redisFree(context); }

RawRedis::RawRedis(std::uint16_t port) : context_(redisConnect("127.0.0.1", port)) {
  if (!context_ || context_->err != 0) throw std::runtime_error("hiredis does not connect");
  releaseSha_ = load(releaseScript);
}

std::string RawRedis::load(std::string_view script) {
  add({"SCRIPT", "LOAD", script});
  void* answer = nullptr;
  redisGetReply(context_.get(), &answer);
  const Reply sha(static_cast<redisReply*>(answer));
  if (!sha || sha->type != REDIS_REPLY_STRING) throw std::runtime_error("the raw script was refused");
  return {sha->str, static_cast<std::size_t>(sha->len)};
}

std::int64_t RawRedis::ask(Words words) {
  add(words);
  return answer();
}

void RawRedis::add(Words words) {
  std::array<const char*, 12> texts{};
  std::array<std::size_t, 12> lengths{};
  std::size_t count = 0;
  for (const std::string_view word : words) {
    texts.at(count) = word.data();
    lengths.at(count++) = word.size();
  }
  redisAppendCommandArgv(context_.get(), static_cast<int>(count), texts.data(), lengths.data());
}

void RawRedis::send() {
  for (int done = 0; done == 0;) {
    if (redisBufferWrite(context_.get(), &done) != REDIS_OK)
      throw std::runtime_error("the raw command failed");
  }
}

std::int64_t RawRedis::answer() {
  void* answer = nullptr;
  redisGetReply(context_.get(), &answer);
  return numberIn(Reply(static_cast<redisReply*>(answer)));
}

void RawRedis::read() {
  if (redisBufferRead(context_.get()) != REDIS_OK) throw std::runtime_error("the raw connection has failed");
}

std::optional<std::int64_t> RawRedis::received() {
  void* answer = nullptr;
  if (redisReaderGetReply(context_->reader, &answer) != REDIS_OK)
    throw std::runtime_error("the raw answer is malformed");
  if (answer == nullptr) return std::nullopt;
  return numberIn(Reply(static_cast<redisReply*>(answer)));
}

void RawRedis::pair(const std::string& key) {
  addSet(key);
  expectOne();
  addRelease(key);
  expectOne();
}

void RawRedis::pairOnAll(std::span<RawRedis> servers, const std::string& key) {
  for (RawRedis& each : servers) {
    each.addSet(key);
    each.send();
  }
  for (RawRedis& each : servers) each.expectOne();
  for (RawRedis& each : servers) {
    each.addRelease(key);
    each.send();
  }
  for (RawRedis& each : servers) each.expectOne();
}

void RawRedis::addSet(const std::string& key) { add({"SET", key, token, "NX", "PX", "30000"}); }

void RawRedis::addRelease(const std::string& key) { add({"EVALSHA", releaseSha_, "1", key, token}); }

void RawRedis::expectOne() {
  if (answer() != 1) throw std::runtime_error("the raw lock was busy");
}

}  // namespace lockkeeper::bench
