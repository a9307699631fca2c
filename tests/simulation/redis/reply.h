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
    std::string all;
    encodeTo(all);
    return all;
  }
  void encodeTo(std::string& out) const {
    switch (kind) {
      case Kind::status:
        out.append("+").append(text).append("\r\n");
        break;
      case Kind::error:
        out.append("-").append(text).append("\r\n");
        break;
      case Kind::number:
        out.append(":").append(std::to_string(number)).append("\r\n");
        break;
      case Kind::bulk:
        out.append("$").append(std::to_string(text.size())).append("\r\n").append(text).append("\r\n");
        break;
      case Kind::nil:
        out.append("$-1\r\n");
        break;
      case Kind::array:
        out.append("*").append(std::to_string(items.size())).append("\r\n");
        for (const RedisReply& each : items) each.encodeTo(out);
    }
  }
};

using Words = std::vector<std::string>;

}  // namespace lockkeeper::simulation
