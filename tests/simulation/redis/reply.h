#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockkeeper::simulation {

/// What a command answers.
struct RedisReply {
  enum class Kind { status, error, number, bulk, nil, array };
  Kind kind = Kind::nil;
  std::string text{};
  std::int64_t number = 0;
  std::vector<RedisReply> items{};

  static RedisReply ok() { return {.kind = Kind::status, .text = "OK"}; }
  static RedisReply status(std::string text) { return {.kind = Kind::status, .text = std::move(text)}; }
  static RedisReply error(std::string text) { return {.kind = Kind::error, .text = std::move(text)}; }
  static RedisReply of(std::int64_t number) { return {.kind = Kind::number, .number = number}; }
  static RedisReply bulk(std::string text) { return {.kind = Kind::bulk, .text = std::move(text)}; }
  static RedisReply array(std::vector<RedisReply> items = {}) {
    return {.kind = Kind::array, .items = std::move(items)};
  }

  bool operator==(const RedisReply&) const = default;

  /// As it is on the wire (RESP2).
  std::string encoded() const {
    switch (kind) {
      case Kind::status:
        return "+" + text + "\r\n";
      case Kind::error:
        return "-" + text + "\r\n";
      case Kind::number:
        return ":" + std::to_string(number) + "\r\n";
      case Kind::bulk:
        return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
      case Kind::nil:
        return "$-1\r\n";
      case Kind::array:
        break;
    }
    std::string all = "*" + std::to_string(items.size()) + "\r\n";
    for (const RedisReply& each : items) all += each.encoded();
    return all;
  }
};

using Words = std::vector<std::string>;

}  // namespace lockkeeper::simulation
