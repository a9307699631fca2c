#include "queue/redis_client.h"

#include <Poco/NumberParser.h>

#include "lockkeeper/error.h"

namespace sms_gateway {
namespace {

constexpr std::uint16_t defaultPort = 6379;
// More than a blocked read waits, so that a peer that has vanished without a word is noticed.
const Poco::Timespan patience(5, 0);

using Poco::Redis::Array;
using Poco::Redis::BulkString;
using Poco::Redis::RedisType;

Array command(const std::vector<std::string>& words) {
  Array array;
  for (const auto& word : words) array << word;
  return array;
}

template <class Value>
const Value& valueOf(const RedisType& reply) {
  const auto* typed = dynamic_cast<const Poco::Redis::Type<Value>*>(&reply);
  if (typed == nullptr) throw Poco::DataFormatException("an answer of another type than expected");
  return typed->value();
}

}  // namespace

RedisClient::RedisClient(const lockkeeper::StoreUri& uri) : uri_(uri) {
  const std::string& path = uri.path();
  if (uri.scheme() != "redis" || uri.endpoints().size() != 1 ||
      (path.size() > 1 && !Poco::NumberParser::tryParse(path.substr(1), database_))) {
    throw lockkeeper::ConfigError("the queue needs redis://[user:password@]host[:port][/db]");
  }
  password_ = uri.passwordOf(uri.endpoints().front());
}

void RedisClient::giveUp(const std::string& why) {
  client_.reset();
  throw QueueDown(uri_.display() + ": " + why);
}

std::int64_t RedisClient::number(const std::vector<std::string>& words) {
  return ask<std::int64_t>(words, [](const RedisType& reply) { return valueOf<Poco::Int64>(reply); });
}

std::optional<std::string> RedisClient::text(const std::vector<std::string>& words) {
  return ask<std::optional<std::string>>(words, [](const RedisType& reply) -> std::optional<std::string> {
    // A blocked read that ends without result answers with no array instead of no string.
    if (reply.isArray() && valueOf<Array>(reply).isNull()) return std::nullopt;
    const auto& text = valueOf<BulkString>(reply);
    return text.isNull() ? std::nullopt : std::optional(text.value());
  });
}

std::vector<std::string> RedisClient::list(const std::vector<std::string>& words) {
  return ask<std::vector<std::string>>(words, [](const RedisType& reply) {
    const auto& array = valueOf<Array>(reply);
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < array.size(); ++i) texts.push_back(array.get<BulkString>(i).value(""));
    return texts;
  });
}

template <class Value>
Value RedisClient::ask(const std::vector<std::string>& words,
                       const std::function<Value(const RedisType&)>& read) {
  try {
    const RedisType::Ptr reply = connected().sendCommand(command(words));
    if (reply->isError()) throw Poco::Redis::RedisException(valueOf<Poco::Redis::Error>(*reply).getMessage());
    return read(*reply);
  } catch (const Poco::Exception& error) {
    giveUp(error.displayText());
  }
}

Poco::Redis::Client& RedisClient::connected() {
  if (client_) return *client_;
  const auto& server = uri_.endpoints().front();
  auto client = std::make_unique<Poco::Redis::Client>();
  client->connect(Poco::Net::SocketAddress(server.host, server.port.value_or(defaultPort)), patience);
  client->setReceiveTimeout(patience);
  if (!server.user.empty()) {
    client->execute<std::string>(command({"AUTH", server.user, password_}));
  } else if (!password_.empty()) {
    client->execute<std::string>(command({"AUTH", password_}));
  }
  if (database_ != 0) client->execute<std::string>(command({"SELECT", std::to_string(database_)}));
  client_ = std::move(client);
  return *client_;
}

}  // namespace sms_gateway
