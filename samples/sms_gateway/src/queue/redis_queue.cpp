#include "queue/redis_queue.h"

#include <Poco/JSON/Parser.h>
#include <Poco/NumberParser.h>

namespace sms_gateway {
namespace {

// The number of jobs that wait then; 0 when there was no room.
const std::string putScript = R"lua(
if redis.call('LLEN', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
return redis.call('LPUSH', KEYS[1], ARGV[2])
)lua";

// The newest of the held jobs goes first, so that the oldest ends up in front.
const std::string takeBackScript = R"lua(
for _, job in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
  local delivery, message = string.match(job, '^(%d+) (.*)$')
  redis.call('RPUSH', KEYS[2], string.format('%d', delivery + 1) .. ' ' .. message)
end
redis.call('DEL', KEYS[1])
return redis.call('SREM', KEYS[3], ARGV[1])
)lua";

std::string seconds(std::chrono::milliseconds length) {
  return std::to_string(std::chrono::duration<double>(length).count());
}

}  // namespace

RedisQueue::RedisQueue(const lockkeeper::StoreUri& uri, const std::string& keyNamespace, std::size_t size)
    : waitingKey_(keyNamespace + ":waiting"),
      workersKey_(keyNamespace + ":workers"),
      heldPrefix_(keyNamespace + ":held:"),
      size_(std::to_string(size)),
      forPut_(uri),
      forWorker_(uri) {}

bool RedisQueue::put(const Message& message) {
  const std::lock_guard guard(putting_);
  return forPut_.number({"EVAL", putScript, "1", waitingKey_, size_, "1 " + toJson(message)}) != 0;
}

void RedisQueue::enter(const std::string& worker) { forWorker_.number({"SADD", workersKey_, worker}); }

std::optional<Job> RedisQueue::take(const std::string& worker, std::chrono::milliseconds wait) {
  const std::string held = heldKey(worker);
  if (auto job = read(forWorker_.text({"LINDEX", held, "-1"}))) return job;
  return read(forWorker_.text({"BLMOVE", waitingKey_, held, "RIGHT", "LEFT", seconds(wait)}));
}

// Not the whole list: a read that was still blocked on a connection that is lost may have added a second one.
bool RedisQueue::done(const std::string& worker, const Job& job) {
  return forWorker_.number({"LREM", heldKey(worker), "1", job.ticket}) != 0;
}

std::vector<std::string> RedisQueue::workers() {
  // A name that was cut is nobody's: nothing is found to be taken back.
  return forWorker_.list({"SMEMBERS", workersKey_});
}

void RedisQueue::takeBack(const std::string& worker) {
  forWorker_.number({"EVAL", takeBackScript, "3", heldKey(worker), waitingKey_, workersKey_, worker});
}

std::optional<Job> RedisQueue::read(const std::optional<std::string>& reply) {
  if (!reply) return std::nullopt;
  const std::string& text = *reply;
  const auto space = text.find(' ');
  int delivery = 0;
  if (!text.ends_with('}') || !Poco::NumberParser::tryParse(text.substr(0, space), delivery)) {
    forWorker_.giveUp("a reply was cut");
  }
  Poco::JSON::Parser parser;
  const auto object = parser.parse(text.substr(space + 1)).extract<Poco::JSON::Object::Ptr>();
  return Job{.message = {.id = object->getValue<std::string>("id"),
                         .phone = object->getValue<std::string>("phone"),
                         .text = object->getValue<std::string>("text")},
             .delivery = delivery,
             .ticket = text};
}

}  // namespace sms_gateway
