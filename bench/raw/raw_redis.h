#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct redisContext;

namespace lockkeeper::bench {

/// The floor: hiredis, and nothing else. Not thread-safe.
class RawRedis {
 public:
  /// Compares and deletes.
  static constexpr const char* releaseScript =
      "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

  explicit RawRedis(std::uint16_t port);

  /// Two round trips: a plain SET NX PX and a compare-and-delete script. Throws std::runtime_error unless the
  /// lock was taken and freed.
  void pair(const std::string& key);

  /// As pair(), on all of these servers at once: each is asked before the first one is waited for.
  static void pairOnAll(std::span<RawRedis> servers, const std::string& key);

  /// Returns the name under which run() runs the script. Throw std::runtime_error when the server refuses.
  /// @{
  std::string load(std::string_view script);
  void run(std::string_view script, std::string_view key, std::initializer_list<std::string_view> arguments);
  /// @}

 private:
  void addSet(const std::string& key);
  void addRelease(const std::string& key);
  void send();
  void expect(int replyType);

  struct Free {
    void operator()(redisContext* context) const;
  };
  std::unique_ptr<redisContext, Free> context_;
  std::string releaseSha_;
};

}  // namespace lockkeeper::bench
